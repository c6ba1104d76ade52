import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { REPOSITORY } from "../repository.ts";
import { openTerminal, type Terminal } from "./terminal.ts";
import { outputPattern } from "./tutorial.ts";

let terminal: Terminal;
beforeEach(() => {
  terminal = openTerminal({ folder: REPOSITORY, environment: { PATH: process.env.PATH } });
});
afterEach(() => terminal.close());

describe("the commands of a page", () => {
  test("are done in one shell, with what they print", async () => {
    expect((await terminal.run("A=one\ncd docs")).output).toBe("");
    expect((await terminal.run('echo $A\nbasename "$PWD"')).output).toBe("one\ndocs\n");
  });

  test.each([
    ["the last one", "true\nfalse", 1],
    ["one among others", "sh -c 'exit 3'\ntrue", 3],
    ["one of a pipe", "sh -c 'exit 4' | cat\ntrue", 4],
    ["one whose output is a variable", "A=$(no-such-command)\ntrue", 127],
  ])("end with the exit code of one that fails: %s", async (_which, commands, exitCode) => {
    await expect(terminal.run(commands)).rejects.toThrow(`Exit code ${exitCode}, not 0`);
    expect((await terminal.run(`${commands}\necho done`, exitCode)).output).toContain("done");
    await expect(terminal.run("true", 1)).rejects.toThrow("Exit code 0, not 1");
  });
});

describe("a published output", () => {
  test("has … for any text", () => {
    const pattern = outputPattern("one…\n…three", "count");
    expect("one and\ntwo\nthree").toMatch(pattern);
    expect("one and\ntwo").not.toMatch(pattern);
    expect("one").toMatch(outputPattern("one\n…", "count"));
  });

  test("that an error of its command would satisfy is refused", () => {
    expect(() => outputPattern("…todos…", "npm run policies -- public.todos")).toThrow("shows nothing");
    expect(() => outputPattern("…", "true")).toThrow("shows nothing");
  });
});
