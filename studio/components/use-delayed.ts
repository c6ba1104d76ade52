import { useEffect, useState } from "preact/hooks";

const TYPING_MS = 200;

/** Returns the text once nobody has typed for a moment, so that not every letter starts a search. */
export function useDelayed(text: string): string {
  const [delayed, setDelayed] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return delayed;
}
