"""Pictures as sequences: patches, their embedding, and the Vision Transformer. Chapter 10.

A picture is cut into squares, each square becomes a vector as a token does, and the stack of `layers` reads
the row of them. Dosovitskiy et al. (2021), https://arxiv.org/abs/2010.11929.

Shapes: B pictures, C channels, P pixels a side of a patch, N patches of a picture, D = d_model.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from chapters_src.attention import padding_mask
from chapters_src.transformer.configuration import Config
from chapters_src.transformer.layers import TransformerStack


def patches(images: Tensor, patch_size: int) -> Tensor:
    """Cut pictures into squares, row by row, and lay out each square as one vector.

    Args:
        images: (B, C, height, width).
        patch_size: P; divides height and width.

    Returns:
        (B, N, C * P * P): in a vector first come all pixels of the first channel, row by row. A linear layer
        with the weights of a convolution of stride P, `weight.flatten(1)`, makes of it what that makes.

    Raises:
        ValueError: `images` has another shape, or patches do not fill it.
    """
    if images.ndim != 4 or patch_size < 1 or images.size(2) % patch_size or images.size(3) % patch_size:
        raise ValueError(
            f"images {tuple(images.shape)} and patch_size={patch_size}: (batch, channels, height, width) is "
            "needed, and patches that fill height and width"
        )
    return F.unfold(images, patch_size, stride=patch_size).transpose(1, 2)  # (B, C*P*P, N) -> (B, N, C*P*P)


class PatchEmbedding(nn.Module):
    """From pictures to vectors: one for each patch, and before them the class token, a learned vector.

    To each is added what was learned of its position: a row of a table, for the class token too. Dosovitskiy
    et al. (2021), equation 1.

    Args:
        config: `d_model`, `dropout`, and `positions`: "learned" or "none".
        image_size: pixels a side; pictures are square.
        patch_size: P; divides image_size.
        num_channels: C.

    Raises:
        ValueError: other positions, or patches that do not fill the picture.
    """

    def __init__(self, config: Config, *, image_size: int, patch_size: int, num_channels: int) -> None:
        super().__init__()
        if config.positions not in ("learned", "none"):
            raise ValueError(f"positions={config.positions!r}: patches have 'learned' positions, or 'none'")
        if patch_size < 1 or image_size < patch_size or image_size % patch_size:
            raise ValueError(
                f"image_size={image_size}, patch_size={patch_size}: patches have to fill the picture"
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
        """Embed a batch.

        Args:
            images: (B, C, image_size, image_size).

        Returns:
            (B, 1 + N, D): the class token, then the patches row by row.

        Raises:
            ValueError: `images` has another shape.
        """
        if images.shape[1:] != self.image_shape:
            raise ValueError(f"images {tuple(images.shape)}: (batch, {str(self.image_shape)[1:]} is needed")
        embedded = self.projection(images).flatten(2).transpose(1, 2)  # (B, D, rows, columns) -> (B, N, D)
        first = self.class_token.expand(len(images), 1, -1)  # (B, 1, D)
        embedded = torch.cat([first, embedded], dim=1)
        return self.dropout(embedded if self.positions is None else embedded + self.positions)


class VisionTransformer(nn.Module):
    """Says what is in a picture: patches, the stack of an encoder, and a head on the class token.

    Dosovitskiy et al. (2021), section 3.1; with the norm first and GELU it is theirs.

    Args:
        config: of the stack, without vocabulary and cross-attention; `positions` "learned" or "none".
        image_size, patch_size, num_channels: as for `PatchEmbedding`.
        num_classes: how many kinds of pictures there are.

    Raises:
        ValueError: as `PatchEmbedding`, or the configuration has cross-attention.
    """

    def __init__(
        self, config: Config, *, image_size: int, patch_size: int, num_channels: int, num_classes: int
    ) -> None:
        super().__init__()
        if config.cross_attention:
            raise ValueError("a picture has nothing to cross-attend to: set cross_attention=False")
        self.embedding = PatchEmbedding(
            config, image_size=image_size, patch_size=patch_size, num_channels=num_channels
        )
        self.stack = TransformerStack(config)
        self.head = nn.Linear(config.d_model, num_classes)

    def encode(self, images: Tensor, patch_mask: Tensor | None) -> Tensor:
        """Give the states of all patches.

        Args:
            images: (B, C, image_size, image_size).
            patch_mask: 1 or True for a patch that may be looked at, 0 or False for one that is hidden,
                (B, N); None: none is hidden.

        Returns:
            (B, 1 + N, D): the class token first. What stands at hidden patches means nothing.

        Raises:
            ValueError: shapes do not fit, or the mask is of floating point.
        """
        embedded, mask = self.embedding(images), None
        if patch_mask is not None:
            if patch_mask.shape != (len(images), self.embedding.num_patches):
                raise ValueError(
                    f"patch_mask {tuple(patch_mask.shape)} for {len(images)} pictures of "
                    f"{self.embedding.num_patches} patches: one number for each patch is needed"
                )
            mask = F.pad(padding_mask(patch_mask), (1, 0), value=True)  # The class token is never hidden.
        return self.stack(embedded, mask)

    def forward(self, images: Tensor, patch_mask: Tensor | None) -> Tensor:
        """Score the classes.

        Args, and what is raised: as for `encode`.

        Returns:
            Logits, (B, num_classes).
        """
        return self.head(self.encode(images, patch_mask)[:, 0])
