import { expect, test } from "vitest";
import { serveGraphQL } from "../../graphql.ts";

test("a catalogue that is larger than the response limit is read all the same", async () => {
  const { ask, stop } = await serveGraphQL({ settings: { MAX_ANSWER_BYTES: "65536" } });
  try {
    expect(await ask("{ articles(first: 1) { totalCount } }")).toMatchObject({ data: { articles: { totalCount: 0 } } });
  } finally {
    await stop();
  }
});
