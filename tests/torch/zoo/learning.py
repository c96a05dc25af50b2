"""Graphs, points, losses of sequences, reinforcement learning, tables and series."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.torch.zoo.entries import Entry, entries


class Gcn(nn.Module):
    """Messages scaled by both degrees, added by scatter."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        n = x.shape[0]
        loop = torch.arange(n)
        source, target = torch.cat([edges, loop.expand(2, -1)], 1)
        degree = x.new_zeros(n).scatter_add_(0, target, torch.ones_like(target, dtype=x.dtype))
        root = degree.pow(-0.5).masked_fill(degree == 0, 0)
        weight = (root[source] * root[target])[:, None]
        for layer in (self.first, self.second):
            y = layer(x)
            x = torch.zeros_like(y).index_add_(0, target, y[source] * weight)
            x = functional.relu(x) if layer is self.first else x
        return x.log_softmax(-1)


class Gat(nn.Module):
    """Attention over edges: a softmax by segments."""

    def __init__(self, heads: int = 2, width: int = 4) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        self.linear, self.score = nn.Linear(6, heads * width, False), nn.Parameter(torch.randn(2, heads, width))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        n, (source, target) = x.shape[0], edges
        h = self.linear(x).view(n, self.heads, self.width)
        scores = functional.leaky_relu((h * self.score[0]).sum(-1)[source] + (h * self.score[1]).sum(-1)[target], 0.2)
        index = target[:, None].expand(-1, self.heads)
        most = torch.full((n, self.heads), float("-inf"), dtype=x.dtype).scatter_reduce(0, index, scores, "amax")
        weights = (scores - most[target]).exp()
        total = torch.zeros_like(most).scatter_add(0, index, weights)
        weights = weights / (total[target] + 1e-16)
        found = torch.zeros_like(h).index_add(0, target, h[source] * weights[..., None])
        return functional.elu(found.flatten(1))


class MessagePassing(nn.Module):
    """Sums, means and maxima of messages of edges, pooled over the graphs of a batch (GIN, PNA)."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.message, self.update = nn.Linear(6 + 6 + 2, width), nn.GRUCell(4 * width, 6)
        self.norm, self.head = nn.BatchNorm1d(6), nn.Linear(6, 1)

    def forward(self, x: Tensor, edges: Tensor, features: Tensor, graph: Tensor) -> Tensor:
        source, target = edges
        for _ in range(2):
            m = functional.relu(self.message(torch.cat([x[source], x[target], features], -1)))
            index = target[:, None].expand_as(m)
            parts = [
                m.new_zeros(len(x), m.shape[1]).scatter_reduce(0, index, m, how, include_self=False)
                for how in ("sum", "mean", "amax", "amin")
            ]
            x = self.norm(self.update(torch.cat(parts, -1), x))
        pooled = x.new_zeros(3, 6).index_reduce(0, graph, x, "mean", include_self=False)
        return self.head(pooled).squeeze(-1)


class Egnn(nn.Module):
    """Messages of distances; places move along differences; forces are the energy's gradient (SchNet's filters)."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.edge, self.move, self.node = (
            nn.Linear(2 * width + 12, width),
            nn.Linear(width, 1, False),
            nn.Linear(2 * width, width),
        )
        self.kinds, self.energy = nn.Embedding(5, width), nn.Linear(width, 1)

    def _energy(self, places: Tensor, kinds: Tensor) -> Tensor:
        n, h = len(places), self.kinds(kinds)
        for _ in range(2):
            apart = places[:, None] - places[None]
            far = (apart.square().sum(-1) + torch.eye(n, dtype=places.dtype)).sqrt()
            waves = torch.exp(-2 * (far[..., None] - torch.linspace(0, 3, 12, dtype=places.dtype)).square())
            pair = torch.cat([h[:, None].expand(-1, n, -1), h[None].expand(n, -1, -1), waves], -1)
            m = functional.silu(self.edge(pair)) * (1 - torch.eye(n, dtype=places.dtype))[..., None]
            places = places + (apart / (far[..., None] + 1) * torch.tanh(self.move(m))).mean(1)
            h = h + self.node(torch.cat([h, m.sum(1)], -1))
        return self.energy(h).sum()

    def forward(self, places: Tensor, kinds: Tensor) -> tuple[Tensor, Tensor]:
        force, energy = torch.func.grad_and_value(self._energy)(places, kinds)
        return energy, -force


class PointNet(nn.Module):
    """Farthest points in a loop, a ball's neighbours, shared perceptrons, maxima."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 1))
        self.head = nn.Linear(16, 4)

    def forward(self, points: Tensor) -> Tensor:
        b, n, _ = points.shape
        rows = torch.arange(b)
        near = torch.full((b, n), 1e10, dtype=points.dtype)
        chosen, last = [], torch.zeros(b, dtype=torch.long)
        for _ in range(6):
            chosen.append(last)
            near = torch.minimum(near, (points - points[rows, last][:, None]).square().sum(-1))
            last = near.max(-1).indices
        centers = points.gather(1, torch.stack(chosen, 1)[..., None].expand(-1, -1, 3))
        far = torch.cdist(centers, points)
        index = torch.arange(n).expand(b, 6, n).masked_fill(far > 1.5, n).sort(-1).values[..., :4]
        index = torch.where(index == n, index[..., :1], index)
        group = points[rows[:, None, None], index] - centers[:, :, None]
        return self.head(self.inner(group.permute(0, 3, 1, 2)).amax((2, 3)))


class EdgeConv(nn.Module):
    """DGCNN: neighbours by features, found anew in each layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(6, 8, 1), nn.Conv2d(16, 8, 1)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            inner = 2 * x.mT @ x
            square = x.square().sum(1, keepdim=True)
            index = (inner - square - square.mT).topk(4, -1).indices
            near = x.mT[torch.arange(len(x))[:, None, None], index]
            mine = x.mT[:, :, None].expand_as(near)
            x = functional.leaky_relu(layer(torch.cat([near - mine, mine], -1).permute(0, 3, 1, 2)), 0.2).amax(-1)
        return torch.cat([x.amax(-1), x.mean(-1)], -1)


class Transducer(nn.Module):
    """RNN-T: an encoder, a predictor, a joint network, and the sum over alignments by diagonals of a loop."""

    def __init__(self, words: int = 6, width: int = 8) -> None:
        super().__init__()
        self.encode, self.words = nn.Linear(5, width), nn.Embedding(words, width)
        self.predict, self.joint = nn.GRUCell(width, width), nn.Linear(width, words)

    def forward(self, x: Tensor, labels: Tensor, frames: Tensor, counts: Tensor) -> Tensor:
        b, t, u = x.shape[0], x.shape[1], labels.shape[1] + 1
        state, states = x.new_zeros(b, self.words.embedding_dim), []
        for n in range(u):
            word = self.words(labels[:, n - 1]) if n else torch.zeros_like(state)
            state = self.predict(word, state)
            states.append(state)
        scores = self.joint(torch.tanh(self.encode(x)[:, :, None] + torch.stack(states, 1)[:, None])).log_softmax(-1)
        blank = scores[..., 0]
        word = scores[:, :, :-1].gather(-1, labels[:, None, :, None].expand(-1, t, -1, -1)).squeeze(-1)
        alpha = torch.cat([x.new_zeros(b, 1), word[:, 0].cumsum(-1)], -1)
        rows = [alpha]
        for n in range(1, t):
            stay = alpha + blank[:, n - 1]
            row = [stay[:, 0]]
            for m in range(1, u):
                row.append(torch.logaddexp(stay[:, m], row[-1] + word[:, n, m - 1]))
            alpha = torch.stack(row, 1)
            rows.append(alpha)
        at = torch.arange(b)
        return -(torch.stack(rows, 1)[at, frames - 1, counts] + blank[at, frames - 1, counts]).mean()


class Ctc(nn.Module):
    """A convolution, a bidirectional recurrence, and PyTorch's own CTC loss."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv1d(5, 8, 3, 2, 1), nn.Linear(8, 6)

    def forward(self, x: Tensor, labels: Tensor, frames: Tensor, counts: Tensor) -> Tensor:
        logits = self.head(functional.gelu(self.conv(x)).permute(2, 0, 1)).log_softmax(-1)
        return functional.ctc_loss(logits, labels, frames, counts, zero_infinity=True)


class Crf(nn.Module):
    """A chain: its partition function, the score of given labels, and the best path back."""

    def __init__(self, labels: int = 4) -> None:
        super().__init__()
        self.score, self.change = nn.Linear(6, labels), nn.Parameter(torch.randn(labels, labels))

    def forward(self, x: Tensor, labels: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.score(x)
        at = torch.arange(len(x))
        found = scores[at, 0, labels[:, 0]]
        total = best = scores[:, 0]
        back = []
        for t in range(1, x.shape[1]):
            now = mask[:, t]
            step = self.change[labels[:, t - 1], labels[:, t]] + scores[at, t, labels[:, t]]
            found = found + step * now
            total = torch.where(now[:, None], torch.logsumexp(total[:, :, None] + self.change, 1) + scores[:, t], total)
            most, where = (best[:, :, None] + self.change).max(1)
            best = torch.where(now[:, None], most + scores[:, t], best)
            back.append(torch.where(now[:, None], where, torch.arange(best.shape[1])))
        path = [best.argmax(-1)]
        for each in reversed(back):
            path.append(each.gather(1, path[-1][:, None]).squeeze(1))
        return (total.logsumexp(-1) - found).mean(), torch.stack(path[::-1], 1)


class Ppo(nn.Module):
    """Generalized advantages backwards through time, then the clipped loss with an entropy bonus."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.policy, self.value = (
            nn.Sequential(nn.Linear(4, 16), nn.Tanh()),
            nn.Linear(16, 3),
            nn.Linear(16, 1),
        )

    def forward(self, seen: Tensor, actions: Tensor, rewards: Tensor, ends: Tensor, old: Tensor) -> Tensor:
        x = self.body(seen)
        values = self.value(x).squeeze(-1)
        chosen = torch.distributions.Categorical(logits=self.policy(x[:-1]))
        with torch.no_grad():
            last, found = torch.zeros_like(rewards[0]), []
            for t in reversed(range(rewards.shape[0])):
                go = 1 - ends[t].to(rewards.dtype)
                last = rewards[t] + 0.99 * values[t + 1] * go - values[t] + 0.99 * 0.95 * go * last
                found.append(last)
            gains = torch.stack(found[::-1])
            wanted = gains + values[:-1]
            gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        ratio = (chosen.log_prob(actions) - old).exp()
        loss = -torch.min(ratio * gains, ratio.clamp(0.8, 1.2) * gains).mean()
        return loss + 0.5 * functional.huber_loss(values[:-1], wanted) - 0.01 * chosen.entropy().mean()


class SoftActor(nn.Module):
    """SAC: a squashed Gaussian of given noise, twin critics by vmap, a soft update of the targets."""

    def __init__(self) -> None:
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4))
        self.w1, self.w2 = nn.Parameter(torch.randn(2, 6, 16) * 0.3), nn.Parameter(torch.randn(2, 16, 1) * 0.3)
        self.log = nn.Parameter(torch.tensor(-1.0))
        self.target: Tensor
        self.register_buffer("target", torch.randn(2, 6, 16) * 0.3)

    def forward(self, seen: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        mean, log = self.actor(seen).chunk(2, -1)
        log = log.clamp(-5, 2)
        raw = mean + noise * log.exp()
        normal = torch.distributions.Normal(mean, log.exp())
        chance = (normal.log_prob(raw) - 2 * (0.6931471805599453 - raw - functional.softplus(-2 * raw))).sum(-1)
        x = torch.cat([seen, raw.tanh()], -1)
        values = torch.vmap(lambda a, b: functional.relu(x @ a) @ b)(self.w1, self.w2).squeeze(-1)
        loss = (self.log.exp() * chance - values.amin(0)).mean() - self.log * (chance.detach() - 2).mean()
        with torch.no_grad():
            self.target.lerp_(self.w1, 0.005)
        return loss, self.target.sum()


class VTrace(nn.Module):
    """IMPALA's corrected targets, and a distributional loss projected on fixed atoms (C51)."""

    def __init__(self, atoms: int = 11) -> None:
        super().__init__()
        self.atoms, self.net = atoms, nn.Linear(4, atoms)

    def forward(self, seen: Tensor, rewards: Tensor, logs: Tensor) -> Tensor:
        support = torch.linspace(-5, 5, self.atoms, dtype=seen.dtype)
        logits = self.net(seen)
        values = (logits.softmax(-1) * support).sum(-1)
        rho = logs.exp().clamp(max=1.0)
        with torch.no_grad():
            delta, last, found = rho * (rewards + 0.9 * values[1:] - values[:-1]), torch.zeros_like(rewards[0]), []
            for t in reversed(range(len(rewards))):
                last = delta[t] + 0.9 * rho[t] * last
                found.append(last)
            wanted = values[:-1] + torch.stack(found[::-1])
            moved = (rewards[..., None] + 0.9 * support).clamp(-5, 5) + 5
            low, high = moved.floor().long(), moved.ceil().long()
            low = torch.where((low == high) & (low > 0), low - 1, low)
            high = torch.where(low == high, high + 1, high).clamp(max=self.atoms - 1)
            after = logits[1:].softmax(-1)
            aim = torch.zeros_like(after)
            aim.scatter_add_(-1, low, after * (high - moved)).scatter_add_(-1, high, after * (moved - low))
        return functional.mse_loss(values[:-1], wanted) - (aim * logits[:-1].log_softmax(-1)).sum(-1).mean()


class Dlrm(nn.Module):
    """Tables of embeddings by bags, pairs of products, and a calibrated loss."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(12, 8, mode=mode) for mode in ("sum", "mean", "max"))
        self.dense, self.top = nn.Sequential(nn.Linear(5, 8), nn.ReLU()), nn.Linear(8 + 6, 1)

    def forward(self, dense: Tensor, bags: Tensor) -> Tensor:
        x = self.dense(dense)
        all_ = torch.stack([x, *(table(bags[n]) for n, table in enumerate(self.tables))], 1)
        pairs = torch.bmm(all_, all_.mT)
        row, column = torch.tril_indices(4, 4, -1)
        return self.top(torch.cat([x, pairs[:, row, column]], -1)).squeeze(-1)


class TemporalFusion(nn.Module):
    """Gated residual networks, choice of variables, an LSTM written as a loop, quantile losses."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.lift, self.choose = nn.Parameter(torch.randn(3, width)), nn.Linear(3 * width, 3)
        self.cell, self.gate = nn.LSTMCell(width, width), nn.Linear(width, 2 * width)
        self.norm, self.attend = nn.LayerNorm(width), nn.MultiheadAttention(width, 2, batch_first=True)
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        lifted = x[..., None] * self.lift
        x = (self.choose(lifted.flatten(-2)).softmax(-1)[..., None] * lifted).sum(-2)
        h = c = x.new_zeros(x.shape[0], x.shape[-1])
        states = []
        for each in x.unbind(1):
            h, c = self.cell(each, (h, c))
            states.append(h)
        z = self.norm(x + functional.glu(self.gate(torch.stack(states, 1)), -1))
        mask = torch.triu(torch.ones(z.shape[1], z.shape[1], dtype=torch.bool), 1)
        z = z + self.attend(z, z, z, attn_mask=mask, need_weights=True)[0]
        found = self.head(z)
        q = torch.tensor([0.1, 0.5, 0.9], dtype=found.dtype)
        apart = y[..., None] - found
        return torch.maximum(q * apart, (q - 1) * apart).mean(), found


class Kalman(nn.Module):
    """A linear filter with learnt noise, its log likelihood by a Cholesky factor, smoothed backwards."""

    def __init__(self) -> None:
        super().__init__()
        self.move, self.look = (
            nn.Parameter(torch.eye(3) * 0.9 + torch.randn(3, 3) * 0.05),
            nn.Parameter(torch.randn(2, 3)),
        )
        self.q, self.r = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(2))

    def forward(self, y: Tensor) -> tuple[Tensor, Tensor]:
        x, p = y.new_zeros(y.shape[0], 3), torch.eye(3, dtype=y.dtype).expand(y.shape[0], 3, 3)
        total, kept = y.new_zeros(y.shape[0]), []
        for t in range(y.shape[1]):
            x, p = x @ self.move.T, self.move @ p @ self.move.T + torch.diag(self.q.exp())
            s = self.look @ p @ self.look.T + torch.diag(self.r.exp())
            apart = y[:, t] - x @ self.look.T
            normal = torch.distributions.MultivariateNormal(torch.zeros_like(apart), s, validate_args=False)
            total = total + normal.log_prob(apart)
            gain = torch.linalg.solve(s, self.look @ p).mT
            x, p = x + (gain @ apart[..., None]).squeeze(-1), p - gain @ self.look @ p
            kept.append((x, p))
        found = [kept[-1][0]]
        for x, p in reversed(kept[:-1]):
            ahead = self.move @ p @ self.move.T + torch.diag(self.q.exp())
            gain = torch.linalg.solve(ahead, self.move @ p).mT
            found.append(x + (gain @ (found[-1] - x @ self.move.T)[..., None]).squeeze(-1))
        return -total.mean(), torch.stack(found[::-1], 1)


class NeuralOde(nn.Module):
    """Runge-Kutta of a network with its divergence (a continuous flow)."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))

    def _slope(self, t: float, x: Tensor) -> tuple[Tensor, Tensor]:
        def one(each: Tensor) -> Tensor:
            return self.net(torch.cat([each, each.new_full((1,), t)]))

        return torch.vmap(one)(x), torch.vmap(torch.func.jacrev(one))(x).diagonal(dim1=-2, dim2=-1).sum(-1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        log, h = x.new_zeros(len(x)), 0.25
        for n in range(2):
            t = n * h
            k1, d1 = self._slope(t, x)
            k2, d2 = self._slope(t + h / 2, x + h / 2 * k1)
            k3, d3 = self._slope(t + h / 2, x + h / 2 * k2)
            k4, d4 = self._slope(t + h, x + h * k3)
            x, log = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), log - h / 6 * (d1 + 2 * d2 + 2 * d3 + d4)
        return x, log


class Maml(nn.Module):
    """Inner steps by functional gradients for each task, the outer loss behind them."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        weights = dict(self.net.named_parameters())

        def loss(given: dict[str, Tensor], a: Tensor, b: Tensor) -> Tensor:
            return functional.mse_loss(torch.func.functional_call(self.net, given, (a,)), b)

        def task(a: Tensor, b: Tensor) -> Tensor:
            inner = weights
            for _ in range(2):
                slopes = torch.func.grad(loss)(inner, a[:4], b[:4])
                inner = {name: value - 0.1 * slopes[name] for name, value in inner.items()}
            return loss(inner, a[4:], b[4:])

        return torch.vmap(task)(x, y).mean()


class Capsules(nn.Module):
    """Routing by agreement, margin loss."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.weights = nn.Conv2d(1, 16, 5, 2), nn.Parameter(torch.randn(1, 4 * 36, 3, 6, 4) * 0.1)

    @staticmethod
    def _squash(x: Tensor) -> Tensor:
        square = x.square().sum(-1, keepdim=True)
        return square / (1 + square) * x / (square.sqrt() + 1e-8)

    def forward(self, x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        u = self._squash(self.first(x).view(len(x), 4, 4, -1).permute(0, 1, 3, 2).reshape(len(x), -1, 4))
        votes = (self.weights @ u[:, :, None, :, None]).squeeze(-1)
        logits = torch.zeros_like(votes[..., 0])
        for turn in range(3):
            v = self._squash((logits.softmax(2)[..., None] * votes).sum(1))
            if turn < 2:
                logits = logits + (votes.detach() * v[:, None]).sum(-1)
        long = (v.square().sum(-1) + 1e-9).sqrt()
        hot = functional.one_hot(labels, 3).to(x.dtype)
        loss = hot * functional.relu(0.9 - long).square() + 0.5 * (1 - hot) * functional.relu(long - 0.1).square()
        return loss.sum(-1).mean(), v


class Barlow(nn.Module):
    """Losses that contrast views: Barlow twins, VICReg, supervised contrast, Sinkhorn's assignments, ArcFace."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8))
        self.centers = nn.Parameter(torch.randn(4, 8))

    def forward(self, one: Tensor, other: Tensor, labels: Tensor) -> Tensor:
        a, b = self.encode(one), self.encode(other)
        n = len(a)
        cross = ((a - a.mean(0)) / a.std(0)).T @ ((b - b.mean(0)) / b.std(0)) / n
        loss = (cross.diagonal() - 1).square().sum() + 5e-3 * (cross - cross.diag().diag()).square().sum()
        loss = loss + sum(
            functional.relu(1 - (each.var(0) + 1e-4).sqrt()).mean() + torch.cov(each.T).triu(1).square().sum() / 8
            for each in (a, b)
        )
        x = functional.normalize(torch.cat([a, b]), dim=-1)
        logits = x @ x.T / 0.1
        alone = torch.eye(2 * n, dtype=torch.bool)
        same = (labels.repeat(2)[:, None] == labels.repeat(2)) & ~alone
        chance = logits - torch.logsumexp(logits.masked_fill(alone, float("-inf")), -1, keepdim=True)
        loss = loss - ((chance * same).sum(-1) / same.sum(-1)).mean()
        cosine = functional.normalize(a, dim=-1) @ functional.normalize(self.centers, dim=-1).T
        angle = torch.acos(cosine.clamp(-1 + 1e-6, 1 - 1e-6)) + 0.5 * functional.one_hot(labels, 4)
        with torch.no_grad():
            q = (cosine / 0.05).softmax(-1)
            for _ in range(3):
                q = q / q.sum(0, keepdim=True) / 4
                q = q / q.sum(1, keepdim=True) / n
            q = q * n
        return (
            loss + functional.cross_entropy(angle.cos() * 8, labels) + functional.cross_entropy(b @ self.centers.T, q)
        )


def _graph(nodes: int = 9, edges: int = 20) -> tuple[Tensor, ...]:
    return torch.randn(nodes, 6), torch.randint(nodes, (2, edges))


def _messages() -> tuple[Tensor, ...]:
    return *_graph(), torch.randn(20, 2), torch.tensor([0, 0, 0, 1, 1, 1, 1, 2, 2])


def _speech(time: int, labels: int) -> tuple[Tensor, ...]:
    return torch.randint(1, 6, (2, labels)), torch.tensor([time, time - 2]), torch.tensor([labels, labels - 1])


def _ppo() -> tuple[Tensor, ...]:
    return torch.randn(7, 3, 4), torch.randint(3, (6, 3)), torch.randn(6, 3), torch.rand(6, 3) < 0.2, -torch.rand(6, 3)


def _crf() -> tuple[Tensor, ...]:
    return torch.randn(2, 6, 6), torch.randint(4, (2, 6)), torch.tensor([[True] * 6, [True] * 4 + [False] * 2])


ENTRIES: dict[str, Entry] = entries(
    Entry("GCN by scatter", Gcn, _graph),
    Entry("GAT", Gat, _graph),
    Entry("message passing", MessagePassing, _messages),
    Entry("EGNN with forces", Egnn, lambda: (torch.randn(6, 3), torch.randint(5, (6,)))),
    Entry("PointNet++", PointNet, lambda: (torch.randn(2, 24, 3),)),
    Entry("DGCNN", EdgeConv, lambda: (torch.randn(2, 3, 12),)),
    Entry("RNN-T", Transducer, lambda: (torch.randn(2, 6, 5), *_speech(6, 3))),
    Entry("CTC", Ctc, lambda: (torch.randn(2, 5, 24), *_speech(12, 4)), is_whole=False),
    Entry("CRF", Crf, _crf),
    Entry("PPO with GAE", Ppo, _ppo),
    Entry("SAC", SoftActor, lambda: (torch.randn(5, 4), torch.randn(5, 2))),
    Entry("V-trace and C51", VTrace, lambda: (torch.randn(6, 4, 4), torch.randn(5, 4), torch.randn(5, 4))),
    Entry("DLRM", Dlrm, lambda: (torch.randn(4, 5), torch.randint(12, (3, 4, 3)))),
    Entry("temporal fusion", TemporalFusion, lambda: (torch.randn(2, 6, 3), torch.randn(2, 6))),
    Entry("Kalman filter", Kalman, lambda: (torch.randn(2, 5, 2),)),
    Entry("continuous flow", NeuralOde, lambda: (torch.randn(5, 3),)),
    Entry("MAML", Maml, lambda: (torch.randn(3, 8, 1), torch.randn(3, 8, 1))),
    Entry("capsules", Capsules, lambda: (torch.randn(2, 1, 16, 16), torch.tensor([0, 2]))),
    Entry(
        "contrastive losses",
        Barlow,
        lambda: (torch.randn(8, 8), torch.randn(8, 8), torch.arange(8) % 4),
        is_whole=False,
    ),
)
