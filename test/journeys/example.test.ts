import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../browser.ts";
import { useFixture } from "../fixture.ts";
import { anonKey, openRealtimeFixture } from "../realtime/service.ts";
import { PASSWORD, startExample } from "./start-example.ts";

const EXAMPLE = join(import.meta.dirname, "../../examples/articles/server.ts");

test("the example reports a missing part, or a port in use, without a stack trace", async () => {
  const run = async (env: NodeJS.ProcessEnv) => {
    const program = spawn(process.execPath, [EXAMPLE], { env, stdio: ["ignore", "ignore", "pipe"] });
    const [said, [code]] = await Promise.all([text(program.stderr), once(program, "close")]);
    return { said: said.trim().split("\n"), code };
  };
  expect(await run({})).toEqual({ said: [expect.stringContaining("npm run keys")], code: 1 });
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as AddressInfo;
  try {
    const result = expect.stringContaining(`Port ${port} of 127.0.0.1 cannot be had (EADDRINUSE)`);
    expect(await run({ ANON_KEY: anonKey, PORT: String(port) })).toEqual({ said: [result], code: 1 });
  } finally {
    taken.close();
  }
});

for (const access of ["open", "owner"])
  describeInBrowser(`the example of live articles, with USERS_ACCESS=${access}`, () => testExample(access));

function testExample(access: string): void {
  let ada: Page;
  let reader: Page;
  const complaints: string[] = [];

  const fixture = useFixture(() => openRealtimeFixture("select", { USERS_ACCESS: access }));
  const example = useFixture(() => startExample(EXAMPLE, fixture.service.url, ["Ada"]));
  const browser = useFixture(launchBrowser);
  beforeAll(async () => {
    const open = async () => {
      const page = await (await browser.newContext()).newPage();
      page.on("pageerror", (error) => complaints.push(String(error)));
      page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
      await page.goto(example.address);
      await page.getByText("Live", { exact: true }).waitFor();
      return page;
    };
    [ada, reader] = await Promise.all([open(), open()]);
  });

  const titles = (page: Page) => page.getByRole("heading", { level: 2 }).allTextContents();

  test("a signed-in user writes, publishes and deletes, and a reader sees each change arrive", async () => {
    await ada.getByLabel("E-mail").fill("ada@example.org");
    await ada.getByLabel("Password").fill(PASSWORD);
    await ada.getByRole("button", { name: "Sign in" }).click();
    await ada.getByText("Signed in as Ada").waitFor();

    await ada.getByLabel("Title").fill("First light");
    await ada.getByLabel("Text").fill("It works.");
    await ada.getByRole("button", { name: "Save the draft" }).click();
    await expect.poll(() => titles(ada)).toEqual(["First light"]);
    if (access === "open") await reader.getByText("Ada · draft").waitFor();
    const listed = reader.waitForResponse(/\/rest\/v1\/articles/);
    await reader.reload();
    expect(await (await listed).json()).toHaveLength(access === "open" ? 1 : 0);
    await reader.getByText("Live", { exact: true }).waitFor();
    expect(await reader.getByRole("button", { name: "Publish" }).count()).toBe(0);

    await ada.getByRole("button", { name: "Publish" }).click();
    await reader.getByText("Ada · published").waitFor();
    await ada.getByRole("button", { name: "Delete" }).click();
    await expect.poll(() => titles(reader)).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test("a wrong password is reported", async () => {
    await reader.getByLabel("E-mail").fill("ada@example.org");
    await reader.getByLabel("Password").fill("wrong");
    await reader.getByRole("button", { name: "Sign in" }).click();
    await expect.poll(() => reader.getByRole("alert").textContent()).toContain("wrong");
  });
}
