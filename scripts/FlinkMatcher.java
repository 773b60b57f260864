import java.io.*;
import java.lang.reflect.*;
import java.time.Duration;
import java.util.*;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.state.*;
import org.apache.flink.api.common.typeutils.base.IntSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.cep.nfa.*;
import org.apache.flink.cep.nfa.aftermatch.*;
import org.apache.flink.cep.nfa.compiler.NFACompiler;
import org.apache.flink.cep.nfa.sharedbuffer.*;
import org.apache.flink.cep.pattern.*;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.*;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.*;

/**
 * Flink's own matcher, without a job: reads a pattern and events per line of standard input (JSON, as
 * record_flink_patterns.py writes them), and writes what Flink's NFA finds. An event is its number; its letters decide what it fits.
 */
@SuppressWarnings({"unchecked", "rawtypes"})
public class FlinkMatcher {
    static String[] letters;

    static class Has extends IterativeCondition<Integer> {
        final String letter;
        final boolean iterative; // ... and the partial match has an odd number of events of s0

        Has(String letter, boolean iterative) {
            this.letter = letter;
            this.iterative = iterative;
        }

        public boolean filter(Integer e, Context<Integer> ctx) throws Exception {
            if (!letters[e].contains(letter)) return false;
            if (!iterative) return true;
            int n = 0;
            for (Integer x : ctx.getEventsForPattern("s0")) n++;
            return n % 2 == 1;
        }
    }

    static class Value<T> implements ValueState<T> {
        T current;
        public T value() { return current; }
        public void update(T value) { current = value; }
        public void clear() { current = null; }
    }
    static class Entries<K, V> implements MapState<K, V> {
        final Map<K, V> m = new HashMap<>();
        public V get(K k) { return m.get(k); }
        public void put(K k, V v) { m.put(k, v); }
        public void putAll(Map<K, V> x) { m.putAll(x); }
        public void remove(K k) { m.remove(k); }
        public boolean contains(K k) { return m.containsKey(k); }
        public Iterable<Map.Entry<K, V>> entries() { return m.entrySet(); }
        public Iterable<K> keys() { return m.keySet(); }
        public Iterable<V> values() { return m.values(); }
        public Iterator<Map.Entry<K, V>> iterator() { return m.entrySet().iterator(); }
        public boolean isEmpty() { return m.isEmpty(); }
        public void clear() { m.clear(); }
    }
    static Object store() {
        return Proxy.newProxyInstance(FlinkMatcher.class.getClassLoader(), new Class[]{KeyedStateStore.class}, (p, m, a) -> {
            if (m.getName().equals("getState")) return new Value();
            if (m.getName().equals("getMapState")) return new Entries();
            throw new RuntimeException(m.getName());
        });
    }
    static Object runtimeContext() {
        return Proxy.newProxyInstance(FlinkMatcher.class.getClassLoader(), new Class[]{RuntimeContext.class}, (p, m, a) -> null);
    }

    static Pattern configure(Pattern p, JsonNode s) {
        if (s.has("condition") && !s.get("condition").isNull())
            p = p.where(cond(s.get("condition")));
        if (s.has("negation")) return p;
        int least = s.get("least").asInt();
        Integer most = s.get("most").isNull() ? null : s.get("most").asInt();
        Duration w = s.hasNonNull("inner_gap") ? Duration.ofMillis(s.get("inner_gap").asLong()) : null;
        if (most == null) p = least == 1 ? p.oneOrMore(w) : p.timesOrMore(least, w);
        else if (most > 1) p = most == least ? p.times(least, w) : p.times(least, most, w);
        if (most == null || most > 1) {
            String inner = s.get("inner").asText();
            if (inner.equals("next")) p = p.consecutive();
            if (inner.equals("followed_by_any")) p = p.allowCombinations();
        }
        if (s.path("greedy").asBoolean()) p = p.greedy();
        if (s.path("optional").asBoolean()) p = p.optional();
        if (s.hasNonNull("until")) p = p.until(cond(s.get("until")));
        if (s.hasNonNull("gap")) p = p.within(Duration.ofMillis(s.get("gap").asLong()), WithinType.PREVIOUS_AND_CURRENT);
        return p;
    }
    static Has cond(JsonNode c) { return new Has(c.get(0).asText(), c.get(1).asBoolean()); }

    static Pattern sequence(JsonNode parts, AfterMatchSkipStrategy skip) {
        Pattern p = null;
        for (JsonNode s : parts) {
            boolean group = s.has("steps");
            if (p == null) {
                if (group) p = skip == null ? Pattern.begin(sequence(s.get("steps"), null)) : Pattern.begin(sequence(s.get("steps"), null), skip);
                else p = skip == null ? Pattern.begin(s.get("name").asText()) : Pattern.begin(s.get("name").asText(), skip);
            } else if (s.has("negation")) {
                p = s.get("negation").asText().equals("not_next") ? p.notNext(s.get("name").asText()) : p.notFollowedBy(s.get("name").asText());
            } else {
                String c = s.get("contiguity").asText();
                if (group) {
                    Pattern g = sequence(s.get("steps"), null);
                    p = c.equals("next") ? p.next(g) : c.equals("followed_by") ? p.followedBy(g) : p.followedByAny(g);
                } else {
                    String n = s.get("name").asText();
                    p = c.equals("next") ? p.next(n) : c.equals("followed_by") ? p.followedBy(n) : p.followedByAny(n);
                }
            }
            p = configure(p, s);
        }
        return p;
    }

    static AfterMatchSkipStrategy skip(JsonNode s) {
        switch (s.get(0).asText()) {
            case "no_skip": return AfterMatchSkipStrategy.noSkip();
            case "skip_to_next": return AfterMatchSkipStrategy.skipToNext();
            case "skip_past_last_event": return AfterMatchSkipStrategy.skipPastLastEvent();
            case "skip_to_first": return AfterMatchSkipStrategy.skipToFirst(s.get(1).asText());
            default: return AfterMatchSkipStrategy.skipToLast(s.get(1).asText());
        }
    }

    static ArrayNode matchOf(ObjectMapper om, Map<String, List<Integer>> match) {
        ArrayNode a = om.createArrayNode();
        for (Map.Entry<String, List<Integer>> e : match.entrySet())
            for (Integer i : e.getValue()) a.add(om.createArrayNode().add(i).add(e.getKey()));
        return a;
    }

    public static void main(String[] args) throws Exception {
        ObjectMapper om = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
        String line;
        while ((line = in.readLine()) != null) {
            ObjectNode result = om.createObjectNode();
            try {
                JsonNode c = om.readTree(line);
                JsonNode events = c.get("events");
                letters = new String[events.size()];
                for (int i = 0; i < letters.length; i++) letters[i] = events.get(i).get(0).asText();
                AfterMatchSkipStrategy skip = skip(c.get("skip"));
                Pattern p = sequence(c.get("parts"), skip);
                if (c.hasNonNull("within")) p = p.within(Duration.ofMillis(c.get("within").asLong()));
                NFA<Integer> nfa = NFACompiler.compileFactory(p, true).createNFA();
                nfa.open((RuntimeContext) runtimeContext(), new Configuration());
                SharedBuffer<Integer> buffer = new SharedBuffer<>((KeyedStateStore) store(), IntSerializer.INSTANCE);
                NFAState state = nfa.createInitialNFAState();
                ArrayNode matches = om.createArrayNode(), timeouts = om.createArrayNode();
                try (SharedBufferAccessor<Integer> acc = buffer.getAccessor()) {
                    for (int i = 0; i <= letters.length; i++) {
                        long ts = i < letters.length ? events.get(i).get(1).asLong() : 1L << 50;
                        Tuple2<Collection<Map<String, List<Integer>>>, Collection<Tuple2<Map<String, List<Integer>>, Long>>> adv = nfa.advanceTime(acc, state, ts, skip);
                        for (Map<String, List<Integer>> m : adv.f0) matches.add(om.createArrayNode().add(i).add(matchOf(om, m)));
                        for (Tuple2<Map<String, List<Integer>>, Long> t : adv.f1) timeouts.add(om.createArrayNode().add(t.f1).add(matchOf(om, t.f0)));
                        if (i < letters.length)
                            for (Map<String, List<Integer>> m : nfa.process(acc, state, i, ts, skip, () -> 0L))
                                matches.add(om.createArrayNode().add(i).add(matchOf(om, m)));
                    }
                }
                buffer.releaseCacheStatisticsTimer();
                result.set("matches", matches);
                result.set("timeouts", timeouts);
            } catch (Throwable t) {
                result.put("error", t.getClass().getSimpleName() + ": " + t.getMessage());
            }
            out.println(om.writeValueAsString(result));
        }
        System.exit(0); // a buffer whose pattern was refused half way may have left a thread
    }
}
