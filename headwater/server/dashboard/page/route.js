// The address bar: hash paths as Flink's page has them (`#/job/running/<id>/checkpoints`), so that habits work.
import { useEffect, useState } from "./dom.js";

const parts = () => {
  const [hash, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const names = hash.split("/").filter(Boolean).map(decode);
  return { names: names.length ? names : ["overview"], query: new URLSearchParams(query) };
};

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // somebody typed a lone %
  }
}

export const href = (...names) => `#/${names.map(encodeURIComponent).join("/")}`;

export function go(...names) {
  location.hash = href(...names);
}

/** `{names, query}` of the address bar, as it changes. */
export function useRoute() {
  const [route, setRoute] = useState(parts);
  useEffect(() => {
    const changed = () => setRoute(parts());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}
