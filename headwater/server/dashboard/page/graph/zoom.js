// Zoom and pan: the wheel and pinch, dragging, and the keys + - 0 and the arrows.
import { useCallback, useEffect, useRef, useState } from "../dom.js";

const LIMITS = [0.2, 2];
const STEP = 40;
const MARGIN = { x: 112, y: 48 }; // the buttons stand on the right

/** `{ref, view: {x, y, k}, zoom(factor), fit(), onKeyDown}` for a frame that shows `width` × `height`. */
export function useZoom(width, height) {
  const ref = useRef(null);
  const [view, setView] = useState({ x: 0, y: 0, k: 1 });

  const fit = useCallback(() => {
    const frame = ref.current;
    if (!frame) return;
    const k = Math.min(1, (frame.clientWidth - MARGIN.x) / width, (frame.clientHeight - MARGIN.y) / height);
    setView({ k, x: (frame.clientWidth - width * k) / 2, y: (frame.clientHeight - height * k) / 2 });
  }, [width, height]);

  const zoomAt = useCallback((factor, x, y) => {
    setView((now) => {
      const k = Math.min(LIMITS[1], Math.max(LIMITS[0], now.k * factor));
      return { k, x: x - ((x - now.x) * k) / now.k, y: y - ((y - now.y) * k) / now.k };
    });
  }, []);
  const zoom = useCallback((factor) => zoomAt(factor, ref.current.clientWidth / 2, ref.current.clientHeight / 2), []);

  useEffect(fit, [fit]);
  useEffect(() => {
    const sizes = new ResizeObserver(fit);
    sizes.observe(ref.current);
    return () => sizes.disconnect();
  }, [fit]);
  useEffect(() => {
    const frame = ref.current;
    const onWheel = (event) => {
      if (!event.ctrlKey && !event.metaKey && !frame.matches(":focus-within")) return; // let the page scroll
      event.preventDefault();
      const box = frame.getBoundingClientRect();
      zoomAt(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX - box.left, event.clientY - box.top);
    };
    const onDown = (event) => {
      if (event.button !== 0 || event.target.closest("button")) return;
      frame.setPointerCapture(event.pointerId);
      let last = event;
      const onMove = (move) => {
        const [dx, dy] = [move.clientX - last.clientX, move.clientY - last.clientY];
        last = move;
        setView((now) => ({ ...now, x: now.x + dx, y: now.y + dy }));
      };
      frame.addEventListener("pointermove", onMove);
      frame.addEventListener("lostpointercapture", () => frame.removeEventListener("pointermove", onMove), { once: true });
    };
    frame.addEventListener("wheel", onWheel, { passive: false });
    frame.addEventListener("pointerdown", onDown);
    return () => {
      frame.removeEventListener("wheel", onWheel);
      frame.removeEventListener("pointerdown", onDown);
    };
  }, []);

  function onKeyDown(event) {
    const move = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] }[event.key];
    if (move) setView((now) => ({ ...now, x: now.x + move[0], y: now.y + move[1] }));
    else if (event.key === "+" || event.key === "=") zoom(1.2);
    else if (event.key === "-") zoom(1 / 1.2);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  }
  return { ref, view, zoom, fit, onKeyDown };
}
