"""What PyFlink's packages pass on beyond their __all__: sources, sinks and formats."""

import glob
import os
import tempfile

from pyflink.common import Encoder, JsonRowDeserializationSchema, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors import (
    FileSink,
    FileSource,
    NumberSequenceSource,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    folder = tempfile.mkdtemp()
    with open(os.path.join(folder, "lines.txt"), "w", encoding="utf-8") as file:
        file.write("a\nb\n")
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder).process_static_file_set()
    lines = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "lines")
    numbers = env.from_source(NumberSequenceSource(1, 3), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    output = os.path.join(folder, "output")
    sink = (
        FileSink.for_row_format(output, Encoder.simple_string_encoder())
        .with_output_file_config(OutputFileConfig.builder().with_part_prefix("p").with_part_suffix(".txt").build())
        .with_rolling_policy(RollingPolicy.default_rolling_policy())
        .build()
    )
    lines.union(numbers.map(str, Types.STRING())).sink_to(sink)
    env.execute()
    for path in glob.glob(os.path.join(output, "*", "p-*.txt")):
        with open(path, encoding="utf-8") as file:
            print(file.read(), end="")
    print(JsonRowDeserializationSchema.__name__)


if __name__ == "__main__":
    main()
