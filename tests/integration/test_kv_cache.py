"""One decode step of language models with a cache: objects in and out, a mask over past and new tokens together."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from harness.gate import gate

MODELS = """
import torch
from transformers import DynamicCache, Gemma3ForCausalLM, Gemma3TextConfig, GPT2Config, GPT2LMHeadModel
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.integrations.executorch import register_dynamic_cache_export_support

register_dynamic_cache_export_support()

SMALL = dict(vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, max_position_embeddings=64)
GEMMA = Gemma3TextConfig(**SMALL, head_dim=8, sliding_window=16, layer_types=["sliding_attention", "full_attention"])


def llama():
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SMALL)).eval()


def gpt2():
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=64, n_embd=16, n_layer=2, n_head=2)).eval()


def gemma():
    torch.manual_seed(0)
    return Gemma3ForCausalLM(GEMMA).eval()


def gemma_cache(layers):
    return DynamicCache(layers, config=GEMMA)
"""
BUILDS = {"llama": "transformers:DynamicCache", "gpt2": "transformers:DynamicCache", "gemma": "models.py:gemma_cache"}


def model(name: str, heads: int, past: int) -> str:
    """One decode step as YAML; `past` is the shortest cache."""
    part = f"{{dtype: float32, shape: [batch, {heads}, past, 8], range: [-2, 2]}}"
    layers = f"[{{tuple: [{part}, {part}]}}, {{tuple: [{part}, {part}]}}]"
    return f"""
  {name}-from-{past}:
    factory: models.py:{name}
    dims: {{batch: {{min: 1, max: 3}}, past: {{min: {past}, max: 8}}, cur: {{min: 1, max: 4}}}}
    inputs:
      input_ids: {{dtype: int64, shape: [batch, cur], range: [0, 49]}}
      attention_mask: {{dtype: int64, shape: [batch, "past+cur"], values: [1]}}
      past_key_values: {{build: "{BUILDS[name]}", tuple: {layers}}}
"""


@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
@pytest.mark.slow(seconds=20)
@pytest.mark.parametrize(
    ("name", "heads", "past"),
    [
        ("llama", 1, 0),
        *(
            pytest.param(name, heads, past, marks=pytest.mark.nightly)
            for name, heads, past in [("llama", 1, 1), ("gpt2", 2, 0), ("gpt2", 2, 1), ("gemma", 1, 0), ("gemma", 1, 1)]
        ),
    ],
)
def test_a_decode_step_is_verified(name: str, heads: int, past: int, tmp_path: Path):
    """The program, the .pt2 file and the ONNX model take and return the cache's tensors, from zero tokens on."""
    (tmp_path / "models.py").write_text(MODELS, encoding="utf-8")
    head = "version: 1\ndefaults: {controls: {limit: 10}}\nmodels:\n"
    (tmp_path / "export-gate.yml").write_text(head + model(name, heads, past), encoding="utf-8")
    done = gate(tmp_path, "run", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    (observed,) = results["run"]["models"]
    names = [leaf["name"] for leaf in observed["outputs"]]
    assert names[0] == "logits"
    assert len(names) == 5
    assert {target["target"] for target in observed["targets"]} == {"exported-program", "pt2", "onnx"}
    shortest = [case for case in observed["controls"]["inputs"] if case["sizes"]["past"] == past]
    assert shortest
