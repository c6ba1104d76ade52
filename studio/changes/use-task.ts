import { useEffect, useRef, useState } from "preact/hooks";
import { isAborted } from "../api/client.ts";

type TaskState<Result> = {
  readonly result: Result | null;
  readonly error: Error | null;
  readonly isRunning: boolean;
};

export type Task<Result, Input extends readonly unknown[] = []> = TaskState<Result> & {
  readonly run: (...input: Input) => void;
  readonly stop: () => void;
};

/** Runs a task that the user starts; it ends when the user stops it or leaves the page. */
export function useTask<Result, Input extends readonly unknown[] = []>(
  work: (...input: [...Input, AbortSignal]) => Promise<Result>,
): Task<Result, Input> {
  const [state, setState] = useState<TaskState<Result>>({ result: null, error: null, isRunning: false });
  const controller = useRef<AbortController | null>(null);
  const stop = () => controller.current?.abort();
  useEffect(() => stop, []);
  const run = async (...input: Input) => {
    controller.current = new AbortController();
    setState({ result: null, error: null, isRunning: true });
    try {
      const result = await work(...input, controller.current.signal);
      setState({ result, error: null, isRunning: false });
    } catch (failure) {
      setState({ result: null, error: isAborted(failure) ? null : (failure as Error), isRunning: false });
    }
  };
  return { ...state, run, stop };
}
