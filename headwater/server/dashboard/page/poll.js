// Fetch something again and again while somebody looks at it.
import { get } from "./api.js";
import { useCallback, useEffect, useState } from "./dom.js";

export const REFRESH_MS = 2000;

const NOTHING = { data: null, error: null, at: 0 };

/**
 * `{data, error, at, refresh}` of `url`, fetched every `interval` ms; `url` null: nothing yet. `interval` 0: once.
 *
 * On a failure the last data stay, next to the error: what was seen a moment ago is better than an empty page. The next
 * request starts after the answer to the last one, never beside it; a hidden page asks nothing.
 */
export function usePolled(url, interval = REFRESH_MS) {
  const [state, setState] = useState({ url, ...NOTHING });
  const [round, setRound] = useState(0);

  useEffect(() => {
    if (url === null) return undefined;
    const abort = new AbortController();
    let timer = 0;

    async function step() {
      if (document.hidden && interval) return;
      try {
        const data = await get(url, { signal: abort.signal });
        setState({ url, data, error: null, at: Date.now() });
      } catch (error) {
        if (abort.signal.aborted) return;
        setState((before) => ({ ...(before.url === url ? before : NOTHING), url, error }));
      }
      if (interval && !abort.signal.aborted) timer = setTimeout(step, interval);
    }
    const awake = () => {
      clearTimeout(timer);
      if (!document.hidden && interval) step();
    };

    step();
    document.addEventListener("visibilitychange", awake);
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", awake);
    };
  }, [url, interval, round]);

  const refresh = useCallback(() => setRound((number) => number + 1), []);
  return { ...(state.url === url ? state : NOTHING), refresh };
}
