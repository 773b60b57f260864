"""The ten most visited pages of every minute: a windowing table function, GROUP BY, and ROW_NUMBER() for the best.

A minute is told when the watermark has passed it: once, and for good. So the result only has insertions (+I), and
could go into a file.
"""

from headwater.table import EnvironmentSettings, TableEnvironment

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.get_config().set("parallelism.default", "1")

# Three minutes of visits, one per second. Each page is one of sixteen, by a hexadecimal digit.
t_env.execute_sql(
    """
    CREATE TABLE visits (
      digit STRING,
      number BIGINT,
      page AS CONCAT('/', digit),
      ts AS TO_TIMESTAMP_LTZ(1777636800000 + number * 1000, 3),
      WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
    ) WITH (
      'connector' = 'datagen',
      'fields.number.kind' = 'sequence', 'fields.number.start' = '0', 'fields.number.end' = '179',
      'fields.digit.length' = '1'
    )
    """
)
t_env.execute_sql(
    """
    SELECT DATE_FORMAT(window_start, 'HH:mm') AS `minute`, place, page, visits
    FROM (
      SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY visits DESC, page) AS place
      FROM (
        SELECT window_start, window_end, page, COUNT(*) AS visits
        FROM TABLE(TUMBLE(TABLE visits, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
        GROUP BY window_start, window_end, page
      )
    )
    WHERE place <= 10
    """
).print()
