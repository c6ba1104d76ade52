import { describe, expect, test } from "vitest";
import { hasSmartTag, publicComment } from "../../catalog/catalog.ts";

describe("publicComment", () => {
  test("leaves out smart tags at the start, and only there", () => {
    expect(publicComment("@notNull\n@name thing\nWords.\n@notNull")).toBe("Words.\n@notNull");
    expect(publicComment("@notNull")).toBeNull();
    expect(publicComment(null)).toBeNull();
  });
});

describe("hasSmartTag", () => {
  test("finds a tag by its name, and none in the text after the tags", () => {
    expect(hasSmartTag("@name thing\n@notNull\nWords.", "notNull")).toBe(true);
    expect(hasSmartTag("@name thing\nWords.", "name")).toBe(true);
    expect(hasSmartTag("@notNullItems\nWords.", "notNull")).toBe(false);
    expect(hasSmartTag("Words.\n@notNull", "notNull")).toBe(false);
    expect(hasSmartTag(null, "notNull")).toBe(false);
  });
});
