import { expect, test } from "vitest";
import { occasionOf } from "../../../engine/caller/occasion.ts";

const shown = { id: "r1", method: "POST", path: "/x" };

test("SQL is told of a request what PostgREST tells it, cookies apart from the other headers", () => {
  const headers = { accept: "*/*", "x-note": "Ã©", cookie: 'a=1; b="2"; c=x=y; d=Ã©; ;' };
  expect(occasionOf("graphql", { ...shown, headers })).toEqual({
    interface: "graphql",
    requestId: "r1",
    method: "POST",
    path: "/x",
    headers: '{"accept":"*/*","x-note":"é"}',
    cookies: '{"a":"1","b":"\\"2\\"","c":"x=y","d":"é"}',
  });
  expect(occasionOf("table", { ...shown, headers: {} })).toMatchObject({ headers: "{}", cookies: "{}" });
});
