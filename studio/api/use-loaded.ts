import { useCallback, useEffect, useState } from "preact/hooks";
import { isAborted } from "./http.ts";

export type Loaded<Value> = {
  /** Null until the first result; kept during a reload. */
  readonly value: Value | null;
  readonly error: Error | null;
  readonly isLoading: boolean;
  readonly reload: () => void;
};

/** Loads a value when the component is first rendered, when an input changes, and again by `reload`. */
export function useLoaded<Value>(
  load: (signal: AbortSignal) => Promise<Value>,
  inputs: readonly unknown[],
): Loaded<Value> {
  const [state, setState] = useState<Omit<Loaded<Value>, "reload">>({ value: null, error: null, isLoading: true });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    load(controller.signal).then(
      (value) => !controller.signal.aborted && setState({ value, error: null, isLoading: false }),
      (error: Error) => !isAborted(error) && setState((before) => ({ ...before, error, isLoading: false })),
    );
    return () => controller.abort();
  }, [...inputs, round]);
  return { ...state, reload: useCallback(() => setRound((last) => last + 1), []) };
}

type Changes = {
  /** Why the last change failed, or else the load. */
  readonly failure: Error | null;
  /** Waits for the change and loads the value again. */
  change(work: Promise<unknown>): Promise<void>;
};

/** Changes what a loaded value shows. */
export function useChanges({ error, reload }: Loaded<unknown>): Changes {
  const [refusal, setRefusal] = useState<Error | null>(null);
  const change = async (work: Promise<unknown>) => {
    try {
      setRefusal(null);
      await work;
      reload();
    } catch (failure) {
      setRefusal(failure as Error);
    }
  };
  return { failure: refusal ?? error, change };
}

const REPEAT_MS = 2000;

/** Reloads the value repeatedly while the page is visible and the value is needed. */
export function useRepeatedLoads({ isLoading, reload }: Loaded<unknown>, isNeeded = true): void {
  useEffect(() => {
    if (isLoading || !isNeeded) return undefined;
    const timer = setInterval(() => document.hidden || reload(), REPEAT_MS);
    return () => clearInterval(timer);
  }, [isLoading, isNeeded]);
}
