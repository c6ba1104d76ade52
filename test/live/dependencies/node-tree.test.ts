import { expect, test } from "vitest";
import { findNodes, parseNodeTree } from "../../../live/dependencies/node-tree.ts";

const typesOf = (text: string) => [...findNodes(parseNodeTree(text), "VAR")].map(({ fields }) => fields.get("varno"));

test("nodes are found in fields and lists", () => {
  expect(typesOf("({OPEXPR :args ({VAR :varno 1} {CONST :constvalue 4 [ 1 0 0 0 ]}) :x {VAR :varno 2}} <>)")).toEqual([
    "1",
    "2",
  ]);
});

test("names and strings that look like fields or brackets are values", () => {
  const text = String.raw`{TARGETENTRY :resname :expr :resno 1 :name \{VAR\ :varno\ 9\} :operName ("=") :expr {VAR :varno 3}}`;
  expect(typesOf(text)).toEqual(["3"]);
});

test("a constant keeps its bytes", () => {
  const parsed = parseNodeTree("{CONST :constisnull false :constvalue 7 [ 28 0 0 0 115 117 98 ]}");
  expect([...findNodes(parsed, "CONST")][0]!.fields.get("constvalue")).toEqual("7 [ 28 0 0 0 115 117 98 ]".split(" "));
});
