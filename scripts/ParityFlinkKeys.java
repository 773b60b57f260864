import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Collections;
import java.util.Set;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/** Prints the configuration keys of the Flink jars on the class path: what flink_keys.txt holds. Needs a JDK. */
public class ParityFlinkKeys {
    /** First words of keys that a job or cluster is configured with; others are options of connectors and formats. */
    private static final Set<String> ROOTS =
            Set.of(
                    "akka", "blob", "classloader", "client", "cluster", "compiler", "dstl", "env", "execution",
                    "external-resource", "flink", "fs", "heartbeat", "high-availability", "historyserver",
                    "job-event", "job-result-store", "jobmanager", "jobstore", "kubernetes", "metrics",
                    "parallelism", "pekko", "pipeline", "plugin", "process", "python", "query", "queryable-state",
                    "recovery", "resourcemanager", "rest", "restart-strategy", "scheduler-mode", "security", "slot",
                    "slotmanager", "slow-task-detector", "sql-client", "sql-gateway", "state", "table", "task",
                    "taskmanager", "traces", "user", "web", "yarn", "zookeeper");

    public static void main(String[] arguments) throws Exception {
        TreeSet<String> keys = new TreeSet<>();
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (path.endsWith(".jar")) {
                try (JarFile jar = new JarFile(path)) {
                    for (JarEntry entry : Collections.list(jar.entries())) {
                        String name = entry.getName();
                        if (name.startsWith("org/apache/flink/")
                                && name.endsWith("Options.class")
                                && !name.contains("/shaded/")) {
                            addKeys(name.replace('/', '.').substring(0, name.length() - 6), keys);
                        }
                    }
                }
            }
        }
        keys.removeIf(key -> key.contains("<") || !ROOTS.contains(key.split("\\.")[0]));
        keys.forEach(System.out::println);
    }

    private static void addKeys(String className, Set<String> keys) {
        try {
            for (Field field : Class.forName(className).getDeclaredFields()) {
                boolean isOption = field.getType().getSimpleName().equals("ConfigOption");
                if (!isOption || !Modifier.isStatic(field.getModifiers())) {
                    continue;
                }
                field.setAccessible(true);
                Object option = field.get(null);
                keys.add((String) option.getClass().getMethod("key").invoke(option));
                for (Object former : (Iterable<?>) option.getClass().getMethod("fallbackKeys").invoke(option)) {
                    keys.add((String) former.getClass().getMethod("getKey").invoke(former));
                }
            }
        } catch (ReflectiveOperationException | LinkageError problem) {
            System.err.println(className + ": " + problem); // an optional dependency that is not on the class path
        }
    }
}
