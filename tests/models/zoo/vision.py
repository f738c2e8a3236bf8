"""Image models: patches, residual blocks with lived-in batch norms, skip connections, several scales."""

from __future__ import annotations

import torch
from torch import nn

SEED = 20261020


def live_in(model: nn.Module) -> nn.Module:
    """Give every batch norm running statistics and weights as after training, and return the model in eval mode."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.25, 2.0)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.2, 0.2)
    return model.eval()


def tiny_vit() -> nn.Module:
    """ViT for image classification, two layers, through Hugging Face's own forward and output class."""
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(SEED)
    config = ViTConfig(
        image_size=32,
        patch_size=8,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        num_labels=7,
    )
    return ViTForImageClassification(config).eval()


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with batch norm beside a shortcut."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(after)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(after)
        same = stride == 1 and before == after
        shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        self.shortcut = nn.Identity() if same else shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[batch, before, h, w] to float32[batch, after, h / stride, w / stride]."""
        y = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(y)) + self.shortcut(x))


def resnet() -> nn.Module:
    """A ResNet of four BasicBlocks for ten classes, any image size."""
    torch.manual_seed(SEED)
    stem = [nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    blocks = [BasicBlock(16, 16, 1), BasicBlock(16, 32, 2), BasicBlock(32, 64, 2), BasicBlock(64, 64, 1)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return live_in(nn.Sequential(*stem, *blocks, *head))


def double(before: int, after: int) -> nn.Sequential:
    """Two convolutions with batch norm and ReLU."""
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
        nn.Conv2d(after, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    """Two levels down and up, one upsampled by interpolation and one by a transposed convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.top, self.middle, self.bottom = double(1, 8), double(8, 16), double(16, 32)
        self.transposed = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.join_middle, self.join_top = double(32, 16), double(24, 8)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """float32[batch, 1, side, side] to float32[batch, 2, side, side], side a multiple of 4."""
        top = self.top(image)
        middle = self.middle(nn.functional.max_pool2d(top, 2))
        bottom = self.bottom(nn.functional.max_pool2d(middle, 2))
        y = self.join_middle(torch.cat([self.transposed(bottom), middle], dim=1))
        y = nn.functional.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.head(self.join_top(torch.cat([y, top], dim=1)))


def unet() -> nn.Module:
    """A small UNet."""
    torch.manual_seed(SEED)
    return live_in(UNet())


class Detector(nn.Module):
    """A backbone with one head for each of three strides: a list of scores and a list of boxes."""

    def __init__(self) -> None:
        super().__init__()
        widths = (8, 16, 32)
        self.stages = nn.ModuleList(BasicBlock(a, b, 2) for a, b in zip((3, *widths), widths, strict=False))
        self.scores = nn.ModuleList(nn.Conv2d(width, 5, 1) for width in widths)
        self.boxes = nn.ModuleList(nn.Conv2d(width, 4, 1) for width in widths)

    def forward(self, image: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """float32[batch, 3, side, side] to float32[batch, 5 and 4, side / stride, side / stride] per stride."""
        levels = []
        for stage in self.stages:
            image = stage(image)
            levels.append(image)
        scores = [head(level).sigmoid() for head, level in zip(self.scores, levels, strict=True)]
        return scores, [head(level).exp() for head, level in zip(self.boxes, levels, strict=True)]


def detector() -> nn.Module:
    """A small Detector."""
    torch.manual_seed(SEED)
    return live_in(Detector())


class Neck(nn.Module):
    """Features of three strides to one map at the finest, coarser ones upsampled and added."""

    def __init__(self) -> None:
        super().__init__()
        self.lateral = nn.ModuleList(nn.Conv2d(width, 8, 1) for width in (4, 6, 8))
        self.smooth = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, features: list[torch.Tensor]) -> torch.Tensor:
        """float32[batch, 4, 4s, 4s], [batch, 6, 2s, 2s], [batch, 8, s, s] to float32[batch, 8, 4s, 4s]."""
        fine, medium, coarse = (conv(level) for conv, level in zip(self.lateral, features, strict=True))
        medium = medium + nn.functional.interpolate(coarse, size=medium.shape[-2:], mode="nearest")
        return self.smooth(fine + nn.functional.interpolate(medium, size=fine.shape[-2:], mode="nearest"))


def neck() -> nn.Module:
    """A feature pyramid's Neck, which takes a list."""
    torch.manual_seed(SEED)
    return Neck().eval()
