import { expect, test } from "vitest";
import { commentTags } from "../../../../rest-gateway/resource/collections/fields.ts";

test.each([
  [null, []],
  ["A person.", []],
  ["A person.\n@root user", []],
  ["@root user\nA person.", [["root", ["user"]]]],
  [
    "@list\n@root  user \n@behavior -a\n@behavior -b",
    [
      ["list", [""]],
      ["root", ["user"]],
      ["behavior", ["-a", "-b"]],
    ],
  ],
  ["@ root", []],
])("%j", (comment, tags) => {
  expect([...commentTags(comment)]).toEqual(tags);
});
