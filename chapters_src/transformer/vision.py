"""The Vision Transformer: images as sequences of patches. Chapter 10.

An image is cut into square patches, each patch becomes a vector, like a token, and the stack of `layers`
processes the sequence. Dosovitskiy et al. (2021), https://arxiv.org/abs/2010.11929.

Shapes: B images, C channels, P x P pixels per patch, N patches per image, D = d_model.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from chapters_src.attention import padding_mask
from chapters_src.transformer.configuration import Config
from chapters_src.transformer.layers import TransformerStack


def patches(images: Tensor, patch_size: int) -> Tensor:
    """Cut images into square patches, row by row: (B, C, height, width) -> (B, N, C * P * P).

    In each vector, all pixels of the first channel come first, row by row. A linear layer with
    `weight.flatten(1)` of a convolution of stride P computes what the convolution does.

    Raises:
        ValueError: `images` has another number of dimensions, or patches do not tile it.
    """
    if images.ndim != 4 or patch_size < 1 or images.size(2) % patch_size or images.size(3) % patch_size:
        raise ValueError(
            f"images {tuple(images.shape)} and patch_size={patch_size}: expected (batch, channels, height, "
            "width), and a patch size that divides height and width"
        )
    return F.unfold(images, patch_size, stride=patch_size).transpose(1, 2)  # (B, C*P*P, N) -> (B, N, C*P*P)


class PatchEmbedding(nn.Module):
    """The vectors of an image's patches, after that of the class token, which is learned.

    A learned vector for its position is added to each, the class token included, unless `positions` of the
    configuration is "none". Dosovitskiy et al. (2021), equation 1. Sizes are in pixels.

    Raises:
        ValueError: other positions, or patches that do not tile the image.
    """

    def __init__(self, config: Config, *, image_size: int, patch_size: int, num_channels: int) -> None:
        super().__init__()
        if config.positions not in ("learned", "none"):
            raise ValueError(f"positions={config.positions!r}: for patches, use 'learned' or 'none'")
        if patch_size < 1 or image_size < patch_size or image_size % patch_size:
            raise ValueError(
                f"image_size={image_size}, patch_size={patch_size}: patches have to tile the image"
            )
        self.image_shape = (num_channels, image_size, image_size)
        self.num_patches = (image_size // patch_size) ** 2
        self.projection = nn.Conv2d(num_channels, config.d_model, patch_size, stride=patch_size)
        self.class_token = nn.Parameter(torch.empty(config.d_model))
        self.positions = None
        nn.init.normal_(self.class_token, std=0.02)
        if config.positions == "learned":
            self.positions = nn.Parameter(torch.empty(1 + self.num_patches, config.d_model))
            nn.init.normal_(self.positions, std=0.02)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, images: Tensor) -> Tensor:
        """Embed images, (B, C, image_size, image_size): (B, 1 + N, D), the class token first.

        Raises:
            ValueError: `images` has another shape.
        """
        if images.shape[1:] != self.image_shape:
            raise ValueError(f"images {tuple(images.shape)}: expected (batch, {str(self.image_shape)[1:]}")
        embedded = self.projection(images).flatten(2).transpose(1, 2)  # (B, D, rows, columns) -> (B, N, D)
        first = self.class_token.expand(len(images), 1, -1)  # (B, 1, D)
        embedded = torch.cat([first, embedded], dim=1)
        return self.dropout(embedded if self.positions is None else embedded + self.positions)


class VisionTransformer(nn.Module):
    """Classify images: patches, an encoder's stack, and a linear head on the class token.

    Dosovitskiy et al. (2021), section 3.1, which uses `norm_first=True` and GELU. `config` is that of the
    stack, without vocabulary and cross-attention; its `positions` are "learned" or "none".

    Raises:
        ValueError: as `PatchEmbedding`, or the configuration has cross-attention.
    """

    def __init__(
        self, config: Config, *, image_size: int, patch_size: int, num_channels: int, num_classes: int
    ) -> None:
        super().__init__()
        if config.cross_attention:
            raise ValueError("an image has nothing to cross-attend to: set cross_attention=False")
        self.embedding = PatchEmbedding(
            config, image_size=image_size, patch_size=patch_size, num_channels=num_channels
        )
        self.stack = TransformerStack(config)
        self.head = nn.Linear(config.d_model, num_classes)

    def encode(self, images: Tensor, patch_mask: Tensor | None) -> Tensor:
        """Compute the hidden states of all patches, after that of the class token: (B, 1 + N, D).

        `patch_mask` is 1 or True for a visible patch, 0 or False for a hidden one, (B, N); None: all are
        visible. The vectors of hidden patches are meaningless.

        Raises:
            ValueError: the shapes do not match, or the mask has a floating-point type.
        """
        embedded, mask = self.embedding(images), None
        if patch_mask is not None:
            if patch_mask.shape != (len(images), self.embedding.num_patches):
                raise ValueError(
                    f"patch_mask {tuple(patch_mask.shape)} for {len(images)} images of "
                    f"{self.embedding.num_patches} patches: expected one number per patch"
                )
            mask = F.pad(padding_mask(patch_mask), (1, 0), value=True)  # The class token is always visible.
        return self.stack(embedded, mask)

    def forward(self, images: Tensor, patch_mask: Tensor | None) -> Tensor:
        """Compute the logits of the classes, (B, num_classes). Arguments and errors are those of `encode`."""
        return self.head(self.encode(images, patch_mask)[:, 0])
