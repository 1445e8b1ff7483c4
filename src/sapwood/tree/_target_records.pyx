"""The tables of the records that a tree of several targets has for each of them."""

import numpy as np

from sapwood.tree.layout import TARGET_LEAF, TARGET_NODE, TARGET_STREAM, TARGET_TRIAL


cdef class TargetRecords:
    """What a tree of several targets knows of each of them.

    Parameters
    ----------
    streams, leaves, nodes, trials : structured arrays
        As TARGET_STREAM, TARGET_LEAF, TARGET_NODE and TARGET_TRIAL of `sapwood.tree.layout`: a row
        for each target; for each target of each leaf, one leaf after the other; so for nodes; and
        a row for each target, of the split on trial.
    """

    def __init__(self, streams, leaves, nodes, trials):
        cdef unsigned char[::1] stream_bytes = streams.view(np.uint8)
        cdef unsigned char[::1] leaf_bytes = leaves.view(np.uint8)
        cdef unsigned char[::1] node_bytes = nodes.view(np.uint8)
        cdef unsigned char[::1] trial_bytes = trials.view(np.uint8)
        if (
            streams.itemsize != sizeof(TargetStream)
            or leaves.itemsize != sizeof(TargetLeaf)
            or nodes.itemsize != sizeof(TargetNode)
            or trials.itemsize != sizeof(TargetTrial)
        ):
            raise RuntimeError("the records of kernels and tables differ")
        self.streams, self.leaves, self.nodes, self.trials = streams, leaves, nodes, trials
        self.view = TargetView(
            <TargetStream*>&stream_bytes[0],
            <TargetLeaf*>&leaf_bytes[0],
            <TargetNode*>&node_bytes[0],
            <TargetTrial*>&trial_bytes[0],
        )


def fresh_targets(Py_ssize_t targets, Py_ssize_t leaf_room, Py_ssize_t node_room):
    """Return records of several targets that know nothing."""
    return TargetRecords(
        np.zeros(targets, TARGET_STREAM),
        np.zeros(targets * leaf_room, TARGET_LEAF),
        np.zeros(targets * node_room, TARGET_NODE),
        np.zeros(targets, TARGET_TRIAL),
    )
