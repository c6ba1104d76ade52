import { describe, expect, test } from "vitest";
import { claimAt, parseClaimPath, withClaimAt } from "../../config/claim-path.ts";

const claims = {
  role: "editor",
  app_metadata: { "user role": "author", roles: ["other", "app_editor_eu"] },
  "https://example.com/roles": [{ value: "author" }],
  groups: [{ name: "app_editor" }, 7, "last"],
};

const at = (path: string) => claimAt(claims, parseClaimPath(path)!);

describe("the path of a claim", () => {
  test.each([
    [".role", "editor"],
    ["$.role", "editor"],
    ['.app_metadata."user role"', "author"],
    ['$.app_metadata["user role"]', "author"],
    ["$['app_metadata']['user role']", "author"],
    [".app_metadata.roles[1]", "app_editor_eu"],
    ['."https://example.com/roles"[0].value', "author"],
  ])("%s selects a member or an index", (path, found) => {
    expect(at(path)).toBe(found);
  });

  test.each([
    ['.app_metadata.roles[?(@ == "other")]', "other"],
    ['.app_metadata.roles[?(@ != "other")]', "app_editor_eu"],
    ['.app_metadata.roles[?(@ ^== "app_")]', "app_editor_eu"],
    ['.app_metadata.roles[?(@ ==^ "_eu")]', "app_editor_eu"],
    ['.app_metadata.roles[?(@ *== "editor")]', "app_editor_eu"],
    ['$.app_metadata.roles[?@ == "other"]', "other"],
    ['.groups[?(@ != "x")]', "last"],
    ['$.app_metadata.roles[?search(@, "^app_")]', "app_editor_eu"],
    ['$.app_metadata.roles[?(search(@, "_eu$"))]', "app_editor_eu"],
    ['$.app_metadata.roles[? search( @ , "ed[a-z]+r" ) ]', "app_editor_eu"],
    ["$.app_metadata.roles[?match(@, 'app_.*')]", "app_editor_eu"],
    ["$.app_metadata.roles[?@ == 'other']", "other"],
    ['$.app_metadata.roles[?search(@, "\\\\w_eu")]', "app_editor_eu"],
  ])("%s chooses the first text of a list that is meant", (path, found) => {
    expect(at(path)).toBe(found);
  });

  test.each([
    [".role[2:]", "itor"],
    [".role[:-2]", "edit"],
    [".role[1:-1]", "dito"],
    [".role[-3:]", "tor"],
    [".role[:]", "editor"],
    [".app_metadata.roles[1][4:]", "editor_eu"],
    ['.app_metadata.roles[?(@ ^== "app_")][4:-3]', "editor"],
    [".role[200:]", ""],
  ])("%s selects a part of a text", (path, found) => {
    expect(at(path)).toBe(found);
  });

  test.each([".role", ".groups[1]", ".app_metadata.role[4:]", ".app_metadata.role[:-3]", ".roles[0][4:-3]"])(
    "a role is found where it was written at %s",
    (written) => {
      const path = parseClaimPath(written)!;
      expect(claimAt(withClaimAt({ iss: "us" }, path, "editor"), path)).toBe("editor");
    },
  );

  test.each([
    ".nothing",
    ".role.inside",
    ".role[0]",
    ".app_metadata.roles[1:]",
    ".app_metadata.roles[9]",
    ".app_metadata.roles.length",
    '.app_metadata.roles[?(@ == "nobody")]',
    '.app_metadata[?(@ == "author")]',
    '.groups[?(@ *== "editor")]',
    '$.app_metadata.roles[?match(@, "app_")]',
    '$.app_metadata.roles[?search(@, "^editor")]',
  ])("%s leads nowhere", (path) => {
    expect(at(path)).toBeUndefined();
  });

  test.each([
    "",
    "$",
    "role",
    "role.other",
    ".role##",
    ".my_role;;domain",
    ".#$$%&$%/",
    "1234",
    ".role[?(@ =)]",
    ".role[a:]",
    ".role[1:2:3]",
    '$.roles[?search(@, "(")]',
    "$.roles[?search(@)]",
    '$.roles[?length(@, "a")]',
  ])("%j is invalid", (path) => {
    expect(parseClaimPath(path)).toBeNull();
  });

  test("an element selected from a list is a text without members", () => {
    expect(parseClaimPath('.groups[?(@ == "last")].name')).toBeNull();
    expect(parseClaimPath(".role[1:].name")).toBeNull();
    expect(parseClaimPath(".role[1:][1:]")).toBeNull();
  });
});
