import { expect, test } from "vitest";
import { requestInfoOf } from "../../http/request-info.ts";

const shown = { id: "r1", method: "POST", path: "/x" };

test("the settings of a request are those of PostgREST, with cookies apart from the other headers", () => {
  const headers = { accept: "*/*", "x-note": "Ã©", cookie: 'a=1; b="2"; c=x=y; d=Ã©; ;' };
  expect(requestInfoOf("graphql", { ...shown, headers })).toEqual({
    interface: "graphql",
    requestId: "r1",
    method: "POST",
    path: "/x",
    headers: '{"accept":"*/*","x-note":"é"}',
    cookies: '{"a":"1","b":"\\"2\\"","c":"x=y","d":"é"}',
  });
  expect(requestInfoOf("table", { ...shown, headers: {} })).toMatchObject({ headers: "{}", cookies: "{}" });
});
