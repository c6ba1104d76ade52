import { describe, expect, test } from "vitest";
import { readComment } from "../../../../rest-gateway/openapi/document/comments.ts";

const nothing = { text: undefined, summary: undefined, description: undefined };

describe("a comment in SQL", () => {
  test.each([
    [null, nothing],
    ["", nothing],
    ["A book", { text: "A book", summary: "A book", description: undefined }],
    [
      "A book\n\nOn a shelf.\nOr not.",
      { text: "A book\n\nOn a shelf.\nOr not.", summary: "A book", description: "On a shelf.\nOr not." },
    ],
    ["A book\n", { text: "A book\n", summary: "A book", description: undefined }],
  ])("has its first line as summary and the rest as description: %j", (comment, expected) => {
    expect(readComment(comment)).toEqual(expected);
  });

  test.each([
    ["@behavior -insert", nothing],
    ["@name book\n@notNull\nA book", { text: "A book", summary: "A book", description: undefined }],
    ["@ home", { text: "@ home", summary: "@ home", description: undefined }],
    ["@me.org is ours", { text: "@me.org is ours", summary: "@me.org is ours", description: undefined }],
    ["A book\n@name b", { text: "A book\n@name b", summary: "A book", description: "@name b" }],
  ])("loses the smart tags at its start, and nothing else: %j", (comment, expected) => {
    expect(readComment(comment)).toEqual(expected);
  });
});
