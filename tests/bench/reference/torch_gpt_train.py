"""Train GPT-2 in plain PyTorch on one synthetic batch, as fast as it can.

    python torch_gpt_train.py {tinygpt,gpt2-124m} [--batch 4] [--sequence 128] [--precision bf16]
        [--compile]

It shares nothing with the harness: it is what the torch adapter is measured against. It is written
as nanoGPT's ``model.py`` and ``train.py`` are, with OpenAI's GELU and vocabulary, and without a
schedule of the rate.
"""

import argparse
import contextlib
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody writes it
from torch import nn


@dataclass
class Config:
    layers: int
    width: int
    heads: int
    vocabulary: int
    context: int


MODELS = {
    "tinygpt": Config(2, 64, 4, 512, 64),
    "gpt2-124m": Config(12, 768, 12, 50257, 1024),
}


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.c_attn = nn.Linear(config.width, 3 * config.width)
        self.c_proj = nn.Linear(config.width, config.width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(batch, length, width))


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_fc = nn.Linear(config.width, 4 * config.width)
        self.c_proj = nn.Linear(4 * config.width, config.width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.width)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.width)
        self.mlp = MLP(config)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.wte = nn.Embedding(config.vocabulary, config.width)
        self.wpe = nn.Embedding(config.context, config.width)
        self.h = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.ln_f = nn.LayerNorm(config.width)
        self.lm_head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight
        self.apply(self._start)
        for name, parameter in self.named_parameters():
            if name.endswith("c_proj.weight"):
                nn.init.normal_(parameter, 0, 0.02 / (2 * config.layers) ** 0.5)

    @staticmethod
    def _start(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, 0, 0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1), ignore_index=-1)


def prepare(name, batch, precision="fp32", compiled=False, sequence=None, device="cpu"):
    """Make a training step; calling it trains once and returns the loss tensor."""
    config = MODELS[name]
    torch.manual_seed(0)
    model = GPT(config).to(device).train()
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
        lr=6e-4,
        betas=(0.9, 0.95),
        fused=True,
    )
    forward = torch.compile(model) if compiled else model
    length = sequence or config.context
    often = 1 / torch.arange(1, config.vocabulary + 1)  # as in language: Zipf's law
    text = torch.multinomial(often, batch * (length + 1), replacement=True)
    text = text.view(batch, length + 1).to(device)
    tokens, targets = text[:, :-1].contiguous(), text[:, 1:].contiguous()

    def step():
        narrow = torch.autocast(device, torch.bfloat16)
        with narrow if precision == "bf16" else contextlib.nullcontext():
            loss = forward(tokens, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    sequence = options.sequence or MODELS[options.model].context
    step = prepare(
        options.model, options.batch, options.precision, options.compile, sequence, options.device
    )
    wait = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    for _ in range(3):
        step()
    wait()
    start = time.perf_counter()
    for _ in range(options.steps):
        loss = step()
    wait()
    rate = options.steps * options.batch * sequence / (time.perf_counter() - start)
    print(f"{rate:.0f} tokens/s, loss {float(loss):.3f}")


if __name__ == "__main__":
    main()
