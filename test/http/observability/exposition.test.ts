import { describe, expect, test } from "vitest";
import {
  counter,
  DurationHistogram,
  formatExposition,
  gauge,
  histogram,
  KeyedCounter,
  makeMetricsReader,
  sumCounters,
} from "../../../http/observability/metrics.ts";

const linesOf = async (...processes: (readonly object[])[]) =>
  (await formatExposition(processes)).split("\n").filter((line) => line !== "" && !line.startsWith("#"));

describe("the Prometheus exposition", () => {
  test("has cumulative histogram buckets in seconds", async () => {
    const durations = new DurationHistogram();
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

  test("sums counters over processes and reports shared gauges once", async () => {
    const measured = (requests: number, lag: number | null) => [
      counter("requests_total", "Requests.", requests),
      gauge("lag_bytes", "Behind.", lag, "max"),
    ];
    expect(await linesOf(measured(3, 500), measured(4, 700), measured(0, null))).toEqual([
      "content_service_requests_total 7",
      "content_service_lag_bytes 700",
    ]);
  });

  test("keeps the counters and histograms of processes that have ended, and no gauges", async () => {
    const measured = (requests: number, milliseconds: number) => {
      const durations = new DurationHistogram();
      durations.add(milliseconds);
      return [
        counter("requests_total", "Requests.", [
          { labels: { status: "200" }, value: requests },
          { labels: { status: "500" }, value: 1 },
        ]),
        histogram("took_seconds", "How long.", (name) => durations.samples(name, {})),
        gauge("sockets", "Open sockets.", 5),
      ];
    };
    const ended = sumCounters([sumCounters([[], measured(3, 2)]), measured(4, 7)]);
    const lines = await linesOf(ended, measured(10, 7));
    expect(lines).toContain('content_service_requests_total{status="200"} 17');
    expect(lines).toContain('content_service_requests_total{status="500"} 3');
    expect(lines).toContain('content_service_took_seconds_bucket{le="0.0025"} 1');
    expect(lines).toContain("content_service_took_seconds_count 3");
    expect(lines).toContain("content_service_sockets 5");
  });

  test("has the event loop lag of the worst process", async () => {
    const measured = await makeMetricsReader([])();
    const withLag = (value: number) =>
      measured.map((metric) =>
        (metric as { name: string }).name === "nodejs_eventloop_lag_p99_seconds"
          ? { ...metric, values: [{ labels: {}, value }] }
          : metric,
      );
    const lines = await linesOf(withLag(0.001), withLag(0.5), withLag(0.002));
    expect(lines).toContain("nodejs_eventloop_lag_p99_seconds 0.5");
  });

  test('groups error codes as "other" when there are too many', () => {
    const occurrences = new KeyedCounter();
    for (let code = 0; code < 1_000; code++) occurrences.add(`X${code}`);
    occurrences.add("X1");
    const counts = occurrences.counts();
    expect(Object.keys(counts)).toHaveLength(201);
    expect(counts.X1).toBe(2);
    expect(counts.other).toBe(800);
  });
});
