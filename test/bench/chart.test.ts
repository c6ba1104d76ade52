import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { benchmarkChart } from "../../bench/chart.ts";

const page = readFileSync("docs/benchmarks.md", "utf8");

describe("the chart of the benchmarks", () => {
  test("is drawn from the figures of docs/benchmarks.md: if it differs, run npm run bench -- chart", () => {
    expect(readFileSync("docs/pictures/benchmarks.svg", "utf8")).toBe(benchmarkChart(page));
  });

  test("has a bar, a number and a description for every measured rate", () => {
    const changed = page.replace(
      /(\n {2}createArticle \([\s\S]*? ours +)\d+(\/s)/,
      (_, before, after) => `${before}12345${after}`,
    );
    expect(changed).not.toBe(page);
    const chart = benchmarkChart(changed);
    expect(chart).toMatch(/<desc id="description">.*GraphQL: create an article: this service 12345, /);
    expect(chart).toContain(">12,345</text>");
    expect(chart.match(/<rect /g)!.length).toBe(chart.match(/<text class="(ours|peer|bound)" x="0"/g)!.length);
  });

  test("says which request a page has no figures of", () => {
    expect(() => benchmarkChart(page.replaceAll("createArticle", "other"))).toThrow('no figures of "createArticle"');
  });
});
