import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Follows the width of the element that gets the reference; 0 until it is measured. */
export function useWidth<Measured extends HTMLElement>() {
  const element = useRef<Measured>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measured = element.current!;
    const measure = () => setWidth(measured.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(measured);
    return () => observer.disconnect();
  }, []);
  return { element, width };
}
