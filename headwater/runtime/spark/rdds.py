"""The RDDs of an epoch, made in the JVM with few round trips (docs/decisions/0005).

PySpark's own RDD class pickles each function anew for every Spark job, and each name in a dotted path of the JVM is a
round trip. Here both happen once: an epoch only links what exists.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pyspark import RDD, SparkContext
from pyspark.core.rdd import _wrap_function
from pyspark.serializers import NoOpSerializer
from pyspark.util import _load_from_socket

_LENGTH = struct.Struct(">i")
_OBJECTS_BETWEEN_RESETS = 8
"""A Java object stream keeps every frame that it has written in memory until it is reset."""

PartitionFunction = Callable[[int, Iterable[bytes]], Iterator[bytes]]
"""(index of the partition, its elements) → the elements of the next RDD."""


class RddFactory:
    """Makes RDDs of bytes. What it returns and takes as an RDD or a function is a JVM object."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        jvm: Any = context._jvm
        python = jvm.org.apache.spark.api.python
        self._scala_context = context._jsc.sc()
        self._python_rdd, self._pairwise_rdd = python.PythonRDD, python.PairwiseRDD
        self._read_stream, self._values = python.PythonRDD.readRDDFromInputStream, python.PythonRDD.valueOfPair
        self._collect_and_serve = python.PythonRDD.collectAndServe
        self._byte_stream = jvm.java.io.ByteArrayInputStream
        self._shuffled_rdd = jvm.org.apache.spark.rdd.ShuffledRDD
        self._to_java = jvm.org.apache.spark.api.java.JavaPairRDD.fromRDD
        self._partitioner = python.PythonPartitioner
        self._any = jvm.scala.reflect.ClassTag.Any()
        # Spark would choose Kryo for pairs of numbers and bytes. Each task gets a Kryo serializer of its own, which
        # sets up a new Kryo for each partition that the task writes to (docs/performance.md).
        conf = jvm.org.apache.spark.SparkConf(False)
        conf.set("spark.serializer.objectStreamReset", str(_OBJECTS_BETWEEN_RESETS))
        self._serializer = jvm.org.apache.spark.serializer.JavaSerializer(conf)

    def function(self, body: PartitionFunction) -> Any:
        """Return a function for `apply`. It can be used in any number of jobs."""
        return _wrap_function(self._context, body, NoOpSerializer(), NoOpSerializer())

    def parallelize(self, elements: Iterable[bytes], partitions: int) -> Any:
        """Like SparkContext.parallelize, but without pickling, and without a temporary file."""
        data = b"".join(part for element in elements for part in (_LENGTH.pack(len(element)), element))
        return self._read_stream(self._scala_context, self._byte_stream(data), partitions).rdd()

    def apply(self, function: Any, rdd: Any) -> Any:
        """Run a function on each partition, in a Python worker."""
        return self._python_rdd(rdd, function, False, False)

    def of_pyspark(self, rdd: RDD[bytes]) -> Any:
        """Return the JVM's side of an RDD of bytes that PySpark has made."""
        rdd._bypass_serializer = True
        return rdd._jrdd.rdd()

    def union(self, rdds: Sequence[Any]) -> Any:
        """Return all partitions of all RDDs."""
        whole = rdds[0]
        for rdd in rdds[1:]:
            whole = whole.union(rdd)
        return whole

    def shuffle(self, rdd: Any, width: int) -> Any:
        """Send each second element to the partition that the element before it names (`pack_long`)."""
        shuffled = self._shuffled_rdd(
            self._pairwise_rdd(rdd), self._partitioner(width, 0), self._any, self._any, self._any
        ).setSerializer(self._serializer)
        return self._values(self._to_java(shuffled, self._any, self._any)).rdd()

    def collect(self, rdd: Any) -> list[bytes]:
        """Run the job and return all elements."""
        with _load_from_socket(self._collect_and_serve(rdd), NoOpSerializer()) as elements:
            return list(elements)
