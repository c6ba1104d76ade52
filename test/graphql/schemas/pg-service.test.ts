import { expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL } from "../../graphql.ts";

const served = useFixture(() => serveGraphQL({ settings: { MAX_ANSWER_BYTES: "65536" } }));

test("a catalogue that is larger than the response limit is read all the same", async () => {
  const response = await served.ask("{ articles(first: 1) { totalCount } }");
  expect(response).toMatchObject({ data: { articles: { totalCount: 0 } } });
});
