#!/usr/bin/env python3
"""Other programs that know Caffe's nets or its layers, by hand: they are not needed for anything else.

  peers.py opencv TOOL    OpenCV (before 5) reads our .caffemodel and net, and computes the same outputs
  peers.py torch TOOL     a net like Caffe's CIFAR-10 quick: losses of 100 iterations against PyTorch, f32

lenet.py has the same for LeNet and PyTorch. Works in the current folder.
"""
import pathlib
import re
import subprocess
import sys

import numpy as np

from lenet import read_weights


def run(*words):
    r = subprocess.run([*map(str, words)], capture_output=True, text=True)
    if r.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {r.returncode}\n{r.stdout[-2000:]}{r.stderr}")
    return r.stdout


# ---- OpenCV
SHAPE = (4, 6, 19, 17)
DUMMY = """layer { name: 'data' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { shape { dim: [4, 6, 19, 17] } shape { dim: 4 }
  data_filler { type: 'gaussian' std: 1 } data_filler { value: 1 } } }
"""
INPUT = "name: 'peers' layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 4 dim: 6 dim: 19 dim: 17 } } }\n"
FILL = "weight_filler { type: 'gaussian' std: 0.2 } bias_filler { type: 'uniform' min: -0.3 max: 0.3 }"
BODY = f"""
layer {{ name: 'c1' type: 'Convolution' bottom: 'data' top: 'c1' convolution_param {{ num_output: 8 kernel_size: 3 pad: 1 group: 2 {FILL} }} }}
layer {{ name: 'n1' type: 'BatchNorm' bottom: 'c1' top: 'n1' batch_norm_param {{ eps: 0.001 }} }}
layer {{ name: 's1' type: 'Scale' bottom: 'n1' top: 's1' scale_param {{ bias_term: true filler {{ type: 'uniform' min: 0.5 max: 2 }} bias_filler {{ value: 0.1 }} }} }}
layer {{ name: 'r1' type: 'ReLU' bottom: 's1' top: 's1' }}
layer {{ name: 'l1' type: 'LRN' bottom: 's1' top: 'l1' lrn_param {{ local_size: 3 alpha: 0.3 beta: 0.7 }} }}
layer {{ name: 'p1' type: 'Pooling' bottom: 'l1' top: 'p1' pooling_param {{ pool: MAX kernel_size: 3 stride: 2 }} }}
layer {{ name: 'c2' type: 'Convolution' bottom: 'p1' top: 'c2' convolution_param {{ num_output: 8 kernel_size: 3 dilation: 2 pad: 2 {FILL} }} }}
layer {{ name: 'q2' type: 'PReLU' bottom: 'c2' top: 'c2' }}
layer {{ name: 'e2' type: 'Eltwise' bottom: 'c2' bottom: 'p1' top: 'e2' eltwise_param {{ operation: SUM coeff: 1 coeff: -0.5 }} }}
layer {{ name: 'k2' type: 'Concat' bottom: 'e2' bottom: 'c2' top: 'k2' }}
layer {{ name: 'p2' type: 'Pooling' bottom: 'k2' top: 'p2' pooling_param {{ pool: AVE kernel_size: 3 stride: 2 }} }}
layer {{ name: 'd2' type: 'Deconvolution' bottom: 'p2' top: 'd2' convolution_param {{ num_output: 5 kernel_size: 4 stride: 2 pad: 1 {FILL} }} }}
layer {{ name: 't2' type: 'TanH' bottom: 'd2' top: 't2' }}
layer {{ name: 'fc' type: 'InnerProduct' bottom: 't2' top: 'fc' inner_product_param {{ num_output: 9 {FILL} }} }}
layer {{ name: 'do' type: 'Dropout' bottom: 'fc' top: 'fc' }}
layer {{ name: 'ip' type: 'InnerProduct' bottom: 'fc' top: 'ip' inner_product_param {{ num_output: 5 {FILL} }} }}
"""
LOSS = "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"
PROB = "layer { name: 'prob' type: 'Softmax' bottom: 'ip' top: 'prob' }\n"


def opencv(tool):
    import cv2

    pathlib.Path("train.prototxt").write_text(DUMMY + BODY + LOSS)
    pathlib.Path("test.prototxt").write_text(DUMMY + BODY + PROB)
    pathlib.Path("deploy.prototxt").write_text(INPUT + BODY + PROB)
    pathlib.Path("solver.prototxt").write_text("net: 'train.prototxt' base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 20 "
                                               "snapshot_prefix: 'cv'\n")
    run(tool, "train", "--solver", "solver.prototxt", "-w", 3)
    blobs = ["c1", "l1", "p1", "k2", "p2", "t2", "ip", "prob"]
    run(tool, "extract", "-m", "test.prototxt", "-W", "cv_iter_20.caffemodel", "-b", ",".join(["data", *blobs]), "-o", "ours_")
    net = cv2.dnn.readNetFromCaffe("deploy.prototxt", "cv_iter_20.caffemodel")
    net.enableFusion(False)  # with it, blobs inside of what is fused are others
    net.setInput(np.load("ours_data.npy").astype(np.float32).reshape(SHAPE))
    for blob in blobs:
        ours, theirs = np.load(f"ours_{blob}.npy"), net.forward(blob)
        ours = ours.reshape(theirs.shape)
        apart, size = np.abs(ours - theirs).max(), np.abs(theirs).max()
        print(f"OpenCV {cv2.__version__}: {blob}: {apart:.2g} apart, of {size:.3g}")
        assert size > 0 and apart <= 2e-5 * size, blob


# ---- PyTorch
CIFAR = """layer { name: 'd' type: 'Data' top: 'data' top: 'label' data_param { source: 'cifar' backend: LMDB batch_size: 50 }
  transform_param { mean_value: 128 scale: 0.0078125 } }
layer { name: 'conv1' type: 'Convolution' bottom: 'data' top: 'conv1' param { lr_mult: 1 } param { lr_mult: 2 }
  convolution_param { num_output: 32 pad: 2 kernel_size: 5 weight_filler { type: 'xavier' } } }
layer { name: 'pool1' type: 'Pooling' bottom: 'conv1' top: 'pool1' pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: 'relu1' type: 'ReLU' bottom: 'pool1' top: 'pool1' }
layer { name: 'conv2' type: 'Convolution' bottom: 'pool1' top: 'conv2' param { lr_mult: 1 } param { lr_mult: 2 }
  convolution_param { num_output: 32 pad: 2 kernel_size: 5 weight_filler { type: 'xavier' } } }
layer { name: 'relu2' type: 'ReLU' bottom: 'conv2' top: 'conv2' }
layer { name: 'pool2' type: 'Pooling' bottom: 'conv2' top: 'pool2' pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
layer { name: 'conv3' type: 'Convolution' bottom: 'pool2' top: 'conv3' param { lr_mult: 1 } param { lr_mult: 2 }
  convolution_param { num_output: 64 pad: 2 kernel_size: 5 weight_filler { type: 'xavier' } } }
layer { name: 'relu3' type: 'ReLU' bottom: 'conv3' top: 'conv3' }
layer { name: 'pool3' type: 'Pooling' bottom: 'conv3' top: 'pool3' pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
layer { name: 'ip1' type: 'InnerProduct' bottom: 'pool3' top: 'ip1' param { lr_mult: 1 } param { lr_mult: 2 }
  inner_product_param { num_output: 64 weight_filler { type: 'xavier' } } }
layer { name: 'ip2' type: 'InnerProduct' bottom: 'ip1' top: 'ip2' param { lr_mult: 1 } param { lr_mult: 2 }
  inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }
layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip2' bottom: 'label' top: 'loss' }
"""
LAYERS = ["conv1", "conv2", "conv3", "ip1", "ip2"]
BATCH, RECORDS, STEPS, RATE, DECAY = 50, 1000, 100, 0.001, 0.004


def make_records():
    """Coloured bars, a class each, with noise: label, then planes of 32 x 32."""
    dice = np.random.default_rng(5)
    labels = dice.integers(0, 10, RECORDS).astype(np.uint8)
    images = dice.integers(0, 120, (RECORDS, 3, 32, 32))
    for i, label in enumerate(labels):
        images[i, label % 3, 3 * label:3 * label + 4, :] += 110
        images[i, (label + 1) % 3, :, 2 * label:2 * label + 6] += 80
    images = images.astype(np.uint8)
    pathlib.Path("cifar.bin").write_bytes(b"".join(bytes([y]) + x.tobytes() for x, y in zip(images, labels)))
    return images, labels


def torch_net(torch, t, x):
    f = torch.nn.functional
    x = f.max_pool2d(f.conv2d(x, t[0], t[1], padding=2), 3, 2, ceil_mode=True).relu()
    x = f.avg_pool2d(f.conv2d(x, t[2], t[3], padding=2).relu(), 3, 2, ceil_mode=True)
    x = f.avg_pool2d(f.conv2d(x, t[4], t[5], padding=2).relu(), 3, 2, ceil_mode=True)
    return f.linear(f.linear(x.flatten(1), t[6], t[7]), t[8], t[9])


def torch_(tool):
    import shutil

    import torch

    images, labels = make_records()
    shutil.rmtree("cifar", ignore_errors=True)
    run(tool, "data", "convert", "--from", "cifar10", "cifar.bin", "cifar")
    pathlib.Path("quick.prototxt").write_text(CIFAR)
    pathlib.Path("solver.prototxt").write_text(f"net: 'quick.prototxt' base_lr: {RATE} momentum: 0.9 weight_decay: {DECAY} lr_policy: 'fixed' "
                                               f"max_iter: {STEPS} display: 1 snapshot_prefix: 'quick'\n")
    run(tool, "train", "--solver", "solver.prototxt", "--max-iter", 0)
    weights = read_weights("quick_iter_0.caffemodel")
    t = [torch.tensor(b, requires_grad=True) for name in LAYERS for b in weights[name]]
    history = [torch.zeros_like(p) for p in t]
    losses = [float(x) for x in re.findall(r"^Iteration \d+ \(.*\), loss = (\S+)$", run(tool, "train", "--solver", "solver.prototxt", "-w", 3),
                                           flags=re.M)]
    worst = 0
    for it in range(STEPS):
        pick = np.arange(it * BATCH, (it + 1) * BATCH) % RECORDS
        x = torch.tensor(((images[pick].astype(np.float32)) - 128) * 0.0078125)
        loss = torch.nn.functional.cross_entropy(torch_net(torch, t, x), torch.tensor(labels[pick].astype(np.int64)))
        grads = torch.autograd.grad(loss, t)
        with torch.no_grad():
            for i, (p, h, g) in enumerate(zip(t, history, grads)):
                h.mul_(0.9).add_((g + DECAY * p) * RATE * (1 + i % 2))
                p -= h
        worst = max(worst, abs(loss.item() - losses[it]))
        assert worst <= 1e-4, f"iteration {it}: loss {losses[it]}, of PyTorch {loss.item()}"
    print(f"PyTorch {torch.__version__}: {STEPS} iterations, losses {losses[0]:.5f} to {losses[STEPS - 1]:.5f}, at most {worst:.2g} apart")


if __name__ == "__main__":
    {"opencv": opencv, "torch": torch_}[sys.argv[1]](sys.argv[2])
