import { describe, expect, test } from "vitest";
import { readTraceparent } from "../../../http/observability/tracing.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

describe("the traceparent header", () => {
  test.each([
    [`00-${TRACE}-${SPAN}-01`, 1],
    [`00-${TRACE}-${SPAN}-00`, 0],
    [`00-${TRACE}-${SPAN}-03`, 1],
    [`cc-${TRACE}-${SPAN}-01-what-will-be`, 1],
  ])("%s is continued, sampled: %i", (text, traceFlags) => {
    expect(readTraceparent(text)).toEqual({ traceId: TRACE, spanId: SPAN, traceFlags });
  });

  test.each([
    undefined,
    "",
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${"0".repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${"0".repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}`,
  ])("%s is ignored", (text) => {
    expect(readTraceparent(text)).toBeNull();
  });
});
