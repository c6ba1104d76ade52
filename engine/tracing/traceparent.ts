import type { SpanContext } from "@opentelemetry/api";

/** `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`; later versions may append fields. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Null for an invalid header, which W3C Trace Context says to ignore. */
export function readTraceparent(
  text: string | undefined,
): Pick<SpanContext, "traceId" | "spanId" | "traceFlags"> | null {
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(text ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || (version === "00" && more !== undefined)) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags!, 16) & 1 };
}
