"""What an environment says about its settings: no job runs."""

from pyflink.datastream import (
    CheckpointingMode,
    ExternalizedCheckpointRetention,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(3).set_max_parallelism(64).enable_checkpointing(5000, CheckpointingMode.AT_LEAST_ONCE)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    print(env.get_parallelism(), env.get_max_parallelism(), env.get_checkpoint_interval(), env.get_checkpointing_mode())
    checkpoints = env.get_checkpoint_config()
    checkpoints.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
    print(checkpoints.is_checkpointing_enabled(), checkpoints.get_externalized_checkpoint_retention())
    env.get_config().set_auto_watermark_interval(123)
    print(env.get_config().get_auto_watermark_interval(), env.get_config().get_parallelism())
    print(env.is_chaining_enabled(), env.disable_operator_chaining().is_chaining_enabled())


if __name__ == "__main__":
    main()
