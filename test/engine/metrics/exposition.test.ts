import { describe, expect, test } from "vitest";
import { Durations } from "../../../engine/metrics/durations.ts";
import { toExposition } from "../../../engine/metrics/exposition.ts";
import { counter, gauge, histogram } from "../../../engine/metrics/metric.ts";
import { Occurrences } from "../../../engine/metrics/occurrences.ts";

const linesOf = async (...processes: (readonly object[])[]) =>
  (await toExposition(processes)).split("\n").filter((line) => line !== "" && !line.startsWith("#"));

describe("metrics as Prometheus reads them", () => {
  test("a histogram's buckets hold all that was shorter, in seconds", async () => {
    const durations = new Durations();
    for (const milliseconds of [0.25, 3, 3, 80_000]) durations.add(milliseconds);
    const lines = await linesOf([
      histogram("took_seconds", "How long.", (name) => durations.samples(name, { route: "/" })),
    ]);
    expect(lines).toContain('content_service_took_seconds_bucket{route="/",le="0.0005"} 1');
    expect(lines).toContain('content_service_took_seconds_bucket{route="/",le="0.005"} 3');
    expect(lines).toContain('content_service_took_seconds_bucket{route="/",le="30"} 3');
    expect(lines).toContain('content_service_took_seconds_bucket{route="/",le="+Inf"} 4');
    expect(lines).toContain('content_service_took_seconds_count{route="/"} 4');
    expect(lines.find((line) => line.includes("_sum"))).toMatch(/ 80\.00625$/);
  });

  test("several processes are told together: what they count is added up, what they share is told once", async () => {
    const measured = (requests: number, lag: number | null) => [
      counter("requests_total", "Requests.", requests),
      gauge("lag_bytes", "Behind.", lag, "max"),
    ];
    expect(await linesOf(measured(3, 500), measured(4, 700), measured(0, null))).toEqual([
      "content_service_requests_total 7",
      "content_service_lag_bytes 700",
    ]);
  });

  test("codes that SQL makes up are counted together when there are too many of them", () => {
    const occurrences = new Occurrences();
    for (let code = 0; code < 1_000; code++) occurrences.add(`X${code}`);
    occurrences.add("X1");
    const counts = occurrences.counts();
    expect(Object.keys(counts)).toHaveLength(201);
    expect(counts.X1).toBe(2);
    expect(counts.other).toBe(800);
  });
});
