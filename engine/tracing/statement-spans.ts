import { joined, type Observe } from "../database/observe.ts";
import type { Tracing } from "./tracing.ts";

type Options = { readonly startSpan: Tracing["startSpan"]; readonly isTraced: () => boolean };

/** `SpanStatusCode.ERROR`, without loading OpenTelemetry. */
const ERROR = 2;
const IGNORE = (): void => {};

/** Records each statement as a span, by OpenTelemetry's semantic conventions for databases; without parameter values. */
export function observeStatements({ startSpan: begin, isTraced }: Options): Observe {
  return ({ role }, texts) => {
    if (!isTraced()) return IGNORE;
    const text = joined(texts);
    const operation = /\w+/.exec(text)?.[0].toUpperCase() ?? "SQL";
    const startedAt = performance.now();
    const span = begin(operation, {
      kind: "client",
      attributes: { "db.system.name": "postgresql", "db.query.text": text, "postgresql.role": role },
    });
    return ({ error, milliseconds, rows, bytes, pid }) => {
      span.setAttributes({
        "db.response.returned_rows": rows,
        "db.response.returned_bytes": bytes,
        "postgresql.wait_ms": Math.max(0, performance.now() - startedAt - milliseconds),
        "postgresql.execute_ms": milliseconds,
        ...(pid !== null && { "postgresql.pid": pid }),
      });
      if (error !== null) {
        const code = (error as { readonly code?: unknown }).code;
        const kind = typeof code === "string" ? code : ((error as Error).name ?? "Error");
        span.setAttributes({
          "error.type": kind,
          ...(typeof code === "string" && { "db.response.status_code": code }),
        });
        span.setStatus({ code: ERROR });
      }
      span.end();
    };
  };
}
