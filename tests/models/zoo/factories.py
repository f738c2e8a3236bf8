"""Factories as projects have them, one for each usual kind of model, small and with random weights.

`export-gate init` has to find inputs for them: nothing here is annotated or named to help it.
"""

# ruff: noqa: ANN001, ANN204, D101, D102, D103 - the models are what users write

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


def make_bert():
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig(vocab_size=64, max_position_embeddings=40, **SMALL)).eval()


def make_gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=40, n_embd=16, n_layer=1, n_head=2)).eval()


def make_t5():
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=64, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, decoder_start_token_id=0)
    return T5ForConditionalGeneration(config).eval()


def make_clip():
    from transformers import CLIPConfig, CLIPModel

    text = {**SMALL, "vocab_size": 64, "max_position_embeddings": 20, "eos_token_id": 63, "bos_token_id": 62}
    vision = {**SMALL, "image_size": 24, "patch_size": 8}
    return CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=8)).eval()


def make_wav2vec2():
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    config = Wav2Vec2Config(
        vocab_size=12, conv_dim=(8, 8), conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2,
        num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, **SMALL,
    )  # fmt: skip
    return Wav2Vec2ForCTC(config).eval()


def make_vit():
    from transformers import ViTConfig, ViTForImageClassification

    return ViTForImageClassification(ViTConfig(image_size=24, patch_size=8, **SMALL)).eval()


def make_llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(vocab_size=64, max_position_embeddings=40, **SMALL)).eval()


def make_whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=64, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, num_mel_bins=20, max_source_positions=30,
        max_target_positions=20, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3,
    )  # fmt: skip
    return WhisperForConditionalGeneration(config).eval()


class StatefulLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 4, num_layers=2, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x, state):
        h, c = state
        out, (h, c) = self.lstm(x, (h, c))
        return self.head(out[:, -1]), h, c


def make_stateful_lstm():
    return StatefulLSTM().eval()


class GraphConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.lin = nn.Linear(inputs, outputs)

    def forward(self, x, edge_index):
        source, target = edge_index
        messages = self.lin(x)[source]
        out = torch.zeros(x.size(0), messages.size(1), dtype=x.dtype)
        return out.index_add(0, target, messages)


class GraphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = GraphConv(7, 8)
        self.conv2 = GraphConv(8, 3)

    def forward(self, x, edge_index):
        return self.conv2(torch.relu(self.conv1(x, edge_index)), edge_index)


def make_graph_net():
    return GraphNet().eval()


class Tabular(nn.Module):
    def __init__(self, cardinalities=(5, 12, 3), continuous=4):
        super().__init__()
        self.embeddings = nn.ModuleList([nn.Embedding(n, 3) for n in cardinalities])
        self.norm = nn.BatchNorm1d(continuous)
        self.mlp = nn.Sequential(nn.Linear(3 * len(cardinalities) + continuous, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, x_cat, x_cont):
        parts = [table(x_cat[:, i]) for i, table in enumerate(self.embeddings)]
        return self.mlp(torch.cat([*parts, self.norm(x_cont)], dim=1))


def make_tabular():
    return Tabular().eval()


class CameraFrames(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2)
        self.head = nn.Linear(4, 2)

    def forward(self, frames):
        x = frames.permute(0, 3, 1, 2).float() / 255
        return self.head(torch.relu(self.conv(x)).mean((2, 3)))


def make_camera():
    return CameraFrames().eval()


class MelClassifier(nn.Module):
    def __init__(self, n_mels=40):
        super().__init__()
        self.conv = nn.Conv1d(n_mels, 8, 3, padding=1)
        self.gru = nn.GRU(8, 8, batch_first=True)
        self.head = nn.Linear(8, 5)

    def forward(self, log_mel):
        x = torch.relu(self.conv(log_mel)).transpose(1, 2)
        return self.head(self.gru(x)[0].mean(1))


def make_log_mel():
    return MelClassifier().eval()


class Spectrogram(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.conv = nn.Conv1d(33, 4, 3)

    def forward(self, waveform):
        spectrum = torch.stft(waveform, 64, 32, window=self.window, return_complex=True).abs()
        return self.conv(torch.log(spectrum + 1e-3)).mean(-1)


def make_waveform():
    return Spectrogram().eval()


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Linear(8, 8)
        self.down, self.up = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ConvTranspose2d(8, 3, 4, stride=2, padding=1)

    def forward(self, x, timesteps):
        half = torch.exp(-math.log(1e4) * torch.arange(4) / 4)
        angles = timesteps[:, None].float() * half[None]
        t = self.time(torch.cat([angles.sin(), angles.cos()], dim=1))
        return self.up(functional.silu(self.down(x) + t[:, :, None, None]))


def make_denoiser():
    return Denoiser().eval()


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(30, 8), nn.Embedding(20, 8)
        self.transformer = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
        self.head = nn.Linear(8, 20)

    def forward(self, src, tgt):
        length = tgt.size(1)
        mask = torch.full((length, length), float("-inf")).triu(1)
        return self.head(self.transformer(self.source(src), self.target(tgt), tgt_mask=mask))


def make_translator():
    return Translator().eval()


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 8, 1)
        self.norm = nn.BatchNorm1d(8)
        self.head = nn.Linear(8, 4)

    def forward(self, points):
        x = points.transpose(1, 2)
        return self.head(torch.relu(self.norm(self.conv(x))).amax(-1))


def make_points():
    return PointNet().eval()


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(3, 4, 3, padding=1)
        self.head = nn.Conv2d(8, 2, 3, padding=1)

    def forward(self, image1, image2):
        a, b = (self.features(2 * (image / 255.0) - 1.0) for image in (image1, image2))
        return self.head(torch.cat([a, b], dim=1))


def make_flow():
    return Flow().eval()


class PackedClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(40, 6)
        self.gru = nn.GRU(6, 8, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, tokens, lengths):
        steps, _ = self.gru(self.embedding(tokens))
        last = (lengths - 1).view(-1, 1, 1).expand(-1, 1, steps.size(2))
        return self.head(steps.gather(1, last).squeeze(1))


def make_lengths():
    return PackedClassifier().eval()


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(100, 6, mode="mean")
        self.head = nn.Linear(6, 3)

    def forward(self, text, offsets):
        return self.head(self.bag(text, offsets))


def make_bags():
    return Bags().eval()


class Forecaster(nn.Module):
    def __init__(self, channels=5, window=24, horizon=6):
        super().__init__()
        self.window = window
        self.linear = nn.Linear(window, horizon)
        self.mix = nn.Linear(channels, channels)

    def forward(self, history):
        return self.linear(self.mix(history).transpose(1, 2)).transpose(1, 2)


def make_forecaster():
    return Forecaster().eval()


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(11 + 3, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, obs, action):
        return self.net(torch.cat([obs, action], dim=-1))


def make_critic():
    return Critic().eval()


class Video(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm3d(4)
        self.head = nn.Linear(4, 6)

    def forward(self, clip):
        return self.head(torch.relu(self.norm(self.conv(clip))).mean((2, 3, 4)))


def make_video():
    return Video().eval()


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1))
        self.boxes, self.scores = nn.Conv2d(8, 4, 1), nn.Conv2d(8, 3, 1)

    def forward(self, images):
        x = self.stem(images)
        return {
            "boxes": self.boxes(x).flatten(2).transpose(1, 2).sigmoid(),
            "scores": self.scores(x).flatten(2).transpose(1, 2).softmax(-1),
            "loss": None,
        }


def make_detector():
    return Detector().eval()
