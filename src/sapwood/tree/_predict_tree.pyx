"""Predictions of a tree: of a row or of many, and the parts of which they consist."""

import numpy as np
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.math cimport fmax, fmin, log1p, sqrt
from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memcpy, memset

from sapwood.corrector._layer cimport CANDIDATES
from sapwood.corrector._pending cimport count_unrecorded
from sapwood.rows._dict_row cimport RowReader
from sapwood.tree._stream cimport mean_weight
from sapwood.tree._target_encoding cimport HEAD, encoding_of, split_encoding_of
from sapwood.tree._model cimport Z_REACH, direct_models
from sapwood.tree._pace cimport rows_between_looks
from sapwood.tree._predict cimport predict_row
from sapwood.tree._prediction cimport predictions_in, set_model_values, prepared_row
from sapwood.tree._pending_predictions cimport pending_key, store_prediction
from sapwood.tree._records cimport (
    EXPERTS, RATES, centres_at, covariance_at, scales_at, terms_of,
)
from sapwood.tree._lock cimport begin_quick_read, end_quick_read
from sapwood.tree._target_records cimport (
    TargetPrediction, model_of, row_doubles, terms_doubles,
)
from sapwood.tree._topology cimport AHEAD, leaf_of, walk_ahead


cdef class PredictingTree(TreeTables):
    """A tree that predicts. The parameters are those of `TreeTables`."""

    def predict_targets_one(self, RowReader reader not None, x, uint64_t id=0, bint record=True):
        """Predict several targets as a list; None if `predict` has to do it."""
        cdef TargetPrediction* predictions = predictions_in(self, self.column.scratch, NULL)
        cdef const double* row
        cdef Py_ssize_t leaf, target
        cdef uint64_t key
        if reader.index is None or reader.known is not reader.features.known:
            reader.follow()
        if not begin_quick_read(self.access):
            return None
        try:
            if not reader.fill(x, False) or reader.width != self.features:
                return None
            row = prepared_row(self, reader.values, self.column.room)
            leaf = leaf_of(self.topology.nodes, row)
            predict_row(self, leaf, row, self.column.scratch, predictions)
            if record and self.tracking and self.stream.rows > 0.0:
                self.pending.reserve(1)
                key = id if id else pending_key(self, reader.values, 0, NULL)
                store_prediction(self, leaf, predictions, self.pending.put(key))
            return [predictions[target].issued for target in range(self.targets)]
        finally:
            end_quick_read(self.access)

    def predict_one(self, RowReader reader not None, x, uint64_t id=0, bint record=True):
        """Predict a row; None if the reader cannot read it as it is, or there are several targets.

        `id` is the key of the id by which the label will find the prediction, 0 without one.
        """
        cdef TargetPrediction prediction
        cdef Py_ssize_t leaf
        if self.targets > 1:
            return None
        if reader.index is None or reader.known is not reader.features.known:
            reader.follow()
        if not begin_quick_read(self.access):
            return self.request_from_learner(reader, x) if id == 0 and record else None
        return (
            prediction.issued
            if self.predict_known(reader, x, record, id, &leaf, &prediction)
            else None
        )

    def place_one(self, RowReader reader not None, x, bint asked=True, uint64_t id=0):
        """Return the prediction of a row and the node of its leaf.

        With `asked`, it is stored until its label arrives. None if the reader cannot read the row
        as it is, or another thread learns.
        """
        cdef TargetPrediction prediction
        cdef Py_ssize_t leaf
        if reader.index is None or reader.known is not reader.features.known:
            reader.follow()
        if not begin_quick_read(self.access) or not self.predict_known(
            reader, x, asked, id, &leaf, &prediction
        ):
            return None
        return prediction.issued, self.leaves[leaf].node

    cdef bint predict_known(
        self, RowReader reader, x, bint asked, uint64_t id, Py_ssize_t* leaf,
        TargetPrediction* prediction,
    ) except -1:
        """Predict a row in a quick read, which ends then; return whether the reader can read it.

        With `asked`, the prediction is stored until its label arrives.
        """
        cdef uint64_t key
        # Nothing here runs foreign code, or releases the GIL.
        cdef const double* row
        try:
            if self.targets > 1 or not reader.fill(x, False) or reader.width != self.features:
                return False
            row = prepared_row(self, reader.values, self.column.room)
            leaf[0] = leaf_of(self.topology.nodes, row)
            if self.stream.rows == 0.0:
                prediction.issued = 0.0
                if self.tracking and asked and id == 0:
                    count_unrecorded(self.pending, 1)
                return True
            predict_row(self, leaf[0], row, self.column.scratch, prediction)
            if self.tracking and asked:
                if self.pending.count > 0:
                    self.pending.reserve(1)
                key = id if id else pending_key(self, reader.values, 0, NULL)
                store_prediction(self, leaf[0], prediction, self.pending.put(key))
        finally:
            end_quick_read(self.access)
        return True

    def request_from_learner(self, RowReader reader not None, x):
        """Predict a row as `predict_one` does, while another thread learns."""
        cdef double prediction = 0.0
        cdef double* values
        cdef bint is_answered
        cdef Py_ssize_t width
        reader.follow()
        known, width = reader.known, reader.width
        values = <double*>PyMem_RawCalloc(width + 1, sizeof(double))
        if values == NULL:
            raise MemoryError
        try:
            if not reader.fill_aside(x, values):
                return None
            is_answered = self.access.request_prediction(values, width, &prediction)
        finally:
            PyMem_RawFree(values)
        if is_answered and known is reader.features.known:
            return prediction
        return self.predict_one(reader, x)

    def explain_row(self, const double[::1] row, Py_ssize_t target=0):
        """Return the parts of the prediction of a target for a row.

        Returns
        -------
        tuple
            The leaf, what its experts predict (from its origin), the standardised terms, what the
            tree predicts, the candidates of its error-correction layer (none without one), and the
            prediction.
        """
        cdef TargetPrediction one
        cdef TargetPrediction* own
        cdef Py_ssize_t terms_start = self.features, leaf
        cdef double[::1] scratch = np.zeros(
            row_doubles(self.features, self.targets, self.column.separate)
        )
        cdef double[::1] room = np.zeros(2 * self.features + 1)
        cdef const double* taken
        self.access.begin_reading()
        try:
            self.check_width(row.shape[0], self.features)
            if not 0 <= target < self.targets:
                raise IndexError(target)
            taken = prepared_row(self, &row[0] if self.features else NULL, &room[0])
            memset(&one, 0, sizeof(TargetPrediction))
            leaf = leaf_of(self.topology.nodes, taken)
            own = predictions_in(self, &scratch[0], &one)
            predict_row(self, leaf, taken, &scratch[0], own)
            own += target
            terms_start += target * terms_doubles(self.features) if self.column.separate else 0
        finally:
            self.access.end_reading()
        return (
            leaf,
            [own.experts[expert] for expert in range(EXPERTS if self.linear else 1)],
            scratch.base[terms_start : terms_start + self.features + 1].tolist()
            if self.linear
            else [],
            own.tree,
            [own.corrected.candidates[place] for place in range(CANDIDATES)]
            if self.tracking
            else [],
            own.issued,
        )

    def encodings_of(self, Py_ssize_t feature, bint from_first=False):
        """Return the numbers that splits read for the codes of a feature, and last for a new code.

        They are target encodings, of y itself or from the first y, or split encodings; NaN where
        there is none.
        """
        cdef double row_weight = mean_weight(&self.stream)
        cdef const double* levels = self.column.many_encodings
        cdef Py_ssize_t each, code
        if not 0 <= feature < self.features or self.column.places[feature] < 0:
            raise IndexError(feature)
        cdef const double* encodings = self.column.split_encodings
        for each in range(feature):
            if self.column.places[each] >= 0:
                levels += 2 * (HEAD + self.column.places[each])
                encodings += 1 + self.column.places[each]
        cdef double[::1] found = np.empty(self.column.places[feature] + 1)
        for code in range(self.column.places[feature] + 1):
            if self.column.split_encoded:
                found[code] = split_encoding_of(encodings, self.column.places[feature], code)
                continue
            found[code] = (0.0 if from_first else self.stream.first) + encoding_of(
                levels, self.column.places[feature], code, row_weight
            )
        return found.base

    def add_unusualness(self, const double[:, ::1] X, double[::1] found):
        """Add to each number how unusual a row is in its leaf: log(1 + a), see `unusualness`.

        Nothing is added before the first row, or if leaves have no linear models.

        Parameters
        ----------
        X : array
            Rows that passed validation.
        found : array
            Gets the sums.
        """
        cdef double* scratch
        cdef const double* taken
        cdef double* room
        cdef Py_ssize_t row
        if X.shape[0] != found.shape[0]:
            raise ValueError("the arrays do not fit together")
        self.access.begin_reading()
        try:
            self.check_width(X.shape[1], self.features)
            if self.stream.rows == 0.0 or not self.linear:
                return
            scratch = <double*>PyMem_RawCalloc(
                2 * self.features + terms_doubles(self.features), sizeof(double)
            )
            if scratch == NULL:
                raise MemoryError
            room = scratch + terms_doubles(self.features)
            with nogil:
                for row in range(X.shape[0]):
                    taken = prepared_row(self, row_at(X, row), room)
                    found[row] += log1p(
                        unusualness(self, leaf_of(self.topology.nodes, taken), taken, scratch)
                    )
            PyMem_RawFree(scratch)
        finally:
            self.access.end_reading()

    def predict(
        self,
        const double[:, ::1] X,
        double[::1] predictions,
        is_current=None,
        int32_t[::1] regions=None,
        bint asked=True,
        const uint64_t[::1] ids=None,
    ):
        """Predict all rows; any number of threads may do so at once.

        Predictions are stored once all rows are predicted, in the order of the rows, unless `asked`
        is False.

        Parameters
        ----------
        X : array
            Rows that passed validation.
        predictions : array
            Gets what is predicted; of several targets, all of a row, then all of the next.
        is_current : callable, optional
            Whether the rows are still what they would be read to. It is called when nobody may
            change the tree.
        regions : array, optional
            Gets the node of each row's leaf.
        asked : bool
            Whether the predictions are kept until their labels come.
        ids : array, optional
            The keys of ids by which labels will find the predictions.

        Returns
        -------
        bool
            Whether they were predicted; if not, they are to be read again.
        """
        cdef double* scratch
        cdef double* records = NULL
        cdef Py_ssize_t recorded = 0, width = 0, row
        if regions is not None and regions.shape[0] != X.shape[0]:
            raise ValueError("the arrays do not fit together")
        if ids is not None and ids.shape[0] != X.shape[0]:
            raise ValueError("the arrays do not fit together")
        self.access.begin_reading()
        try:
            if is_current is not None and not is_current():
                return False
            self.check_width(X.shape[1], self.features)
            if X.shape[0] * self.targets != predictions.shape[0]:
                raise ValueError("the arrays do not fit together")
            if self.stream.rows == 0.0:
                predictions[:] = 0.0
                if regions is not None:
                    regions[:] = 0
                if self.tracking and asked and ids is None:
                    count_unrecorded(self.pending, X.shape[0])
                return True
            if self.tracking and asked:
                recorded, width = min(X.shape[0], self.pending.most), self.pending.width
            scratch = <double*>PyMem_RawCalloc(
                2 * self.features + row_doubles(self.features, self.targets, self.column.separate),
                sizeof(double),
            )
            if recorded:
                # A record, after its key.
                records = <double*>PyMem_RawCalloc(recorded * (1 + width), sizeof(double))
            try:
                if scratch == NULL or (recorded and records == NULL):
                    raise MemoryError
                self.predict_all(X, predictions, regions, scratch, records, X.shape[0] - recorded)
                if recorded:
                    self.pending.reserve(recorded)
                for row in range(recorded):
                    if ids is not None:
                        (<uint64_t*>(records + row * (1 + width)))[0] = ids[
                            X.shape[0] - recorded + row
                        ]
                    memcpy(
                        self.pending.put((<uint64_t*>(records + row * (1 + width)))[0]),
                        records + row * (1 + width) + 1,
                        width * sizeof(double),
                    )
            finally:
                PyMem_RawFree(scratch)
                PyMem_RawFree(records)
        finally:
            self.access.end_reading()
        return True

    cdef int predict_all(
        self,
        const double[:, ::1] X,
        double[::1] predictions,
        int32_t[::1] regions,
        double* scratch,
        double* records,
        Py_ssize_t first_recorded,
    ) except -1:
        """Predict all rows, and see now and then whether somebody has pressed Ctrl-C."""
        cdef Py_ssize_t row, rows = X.shape[0], start = 0, known = 0, target, leaf
        cdef Py_ssize_t next_look = rows_between_looks(self.features)
        cdef Py_ssize_t leaves[AHEAD]
        cdef bint placing = regions is not None
        cdef TargetPrediction one
        cdef TargetPrediction* found = predictions_in(self, scratch, &one)
        cdef double* room = scratch + row_doubles(self.features, self.targets, self.column.separate)
        cdef const double* taken
        with nogil:
            for row in range(rows):
                taken = prepared_row(self, row_at(X, row), room)
                if row >= known:
                    start = row
                    known = row + walk_ahead(
                        self.topology.nodes, taken, self.features,
                        1 if self.column.has_encoded or self.units.hiding else rows - row,
                        self.column.has_categories, leaves,
                    )
                leaf = leaves[row - start]
                predict_row(self, leaf, taken, scratch, found)
                for target in range(self.targets):
                    predictions[row * self.targets + target] = found[target].issued
                if placing:
                    regions[row] = self.leaves[leaf].node
                if row >= first_recorded:
                    (<uint64_t*>records)[0] = pending_key(self, row_at(X, row), 0, NULL)
                    store_prediction(self, leaf, found, records + 1)
                    records += 1 + self.pending.width
                if row == next_look:
                    next_look += rows_between_looks(self.features)
                    with gil:
                        PyErr_CheckSignals()
        return 0


cdef double unusualness(
    TreeTables tables, Py_ssize_t leaf, const double* row, double* work
) noexcept nogil:
    """How far a row is from those of its leaf: a = z'Pz sqrt(n N) / terms.

    z'Pz is about terms / n in a leaf of n rows, and larger where rows were rare. With N, the rows
    of the tree, rows of small leaves are more unusual than those of large ones. What is missing
    counts as usual. Of several models, it is their mean.
    """
    cdef Py_ssize_t features = tables.features, terms = terms_of(features), feature, target
    cdef Py_ssize_t models = tables.targets if tables.column.separate and tables.targets > 1 else 1
    cdef const double* model
    cdef const double* values = row
    cdef double* z = work + features
    cdef double predicted[RATES]
    cdef double distance, total = 0.0
    for target in range(models):
        if tables.column.has_categories or tables.column.split_encoded:
            set_model_values(tables, target, row, work)
            values = work
        model = model_of(tables.models[leaf], features, models > 1, target)
        z[0] = 1.0
        for feature in range(features):
            distance = values[feature] - model[centres_at(features) + feature]
            distance *= model[scales_at(features) + feature]
            # A prediction takes what is too far away to be true as missing; here it counts most.
            z[feature + 1] = (
                fmax(-<double>Z_REACH, fmin(<double>Z_REACH, distance))
                if distance == distance
                else 0.0
            )
        total += direct_models(
            model, model + covariance_at(features), z, terms, &predicted[0], z + terms
        )
    total *= sqrt((tables.leaves[leaf].rows + 1.0) * tables.stream.rows)
    return total / ((features + 1) * models)
