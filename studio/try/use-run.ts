import { useEffect, useRef, useState } from "preact/hooks";
import { isAborted, requestAnyStatus } from "../api/client.ts";
import { type EditedRequest, parseHeaders } from "./edited-request.ts";

export type RunResult = {
  readonly status: number;
  readonly statusText: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
  readonly milliseconds: number;
};

export type Run = {
  readonly result: RunResult | null;
  /** There was no response. */
  readonly error: Error | null;
  readonly isRunning: boolean;
  readonly start: (request: EditedRequest) => void;
};

/** Runs requests, one at a time, with the token of the caller who is viewed. */
export function useRun(): Run {
  const [state, setState] = useState<Omit<Run, "start">>({ result: null, error: null, isRunning: false });
  const controller = useRef<AbortController | null>(null);
  useEffect(() => () => controller.current?.abort(), []);
  const start = (request: EditedRequest) => {
    controller.current?.abort();
    const current = new AbortController();
    controller.current = current;
    setState((before) => ({ ...before, error: null, isRunning: true }));
    send(request, current.signal).then(
      (result) => !current.signal.aborted && setState({ result, error: null, isRunning: false }),
      (error: Error) => !isAborted(error) && setState({ result: null, error, isRunning: false }),
    );
  };
  return { ...state, start };
}

async function send({ method, path, headers, body }: EditedRequest, signal: AbortSignal): Promise<RunResult> {
  const startedAt = performance.now();
  const hasBody = body !== "" && !["GET", "HEAD", "DELETE"].includes(method);
  // The address is one of this service: a text such as //elsewhere would be another one.
  const { origin, pathname, search } = new URL(path, window.location.origin);
  if (origin !== window.location.origin) throw new TypeError(path);
  const response = await requestAnyStatus(pathname + search, {
    method,
    signal,
    headers: parseHeaders(headers) ?? {},
    ...(hasBody && { body }),
  });
  const text = await response.text();
  const milliseconds = Math.round(performance.now() - startedAt);
  return {
    status: response.status,
    statusText: response.statusText,
    headers: [...response.headers],
    body: text,
    milliseconds,
  };
}
