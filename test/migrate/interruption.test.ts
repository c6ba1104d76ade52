import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";

/** A process that prints a line when it is ready. */
async function start(body: string) {
  const module = new URL("../../migrate/interruption.ts", import.meta.url).href;
  const script = `
    import { withInterruption } from ${JSON.stringify(module)};
    import { setTimeout as sleep } from "node:timers/promises";
    ${body}`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script]);
  let printed = "";
  child.stdout.on("data", (data) => {
    printed += data;
  });
  const ended = once(child, "close");
  await once(child.stdout, "data");
  return { child, ended, printed: () => printed };
}

test("a signal before the work keeps it from starting", async () => {
  const { child, ended, printed } = await start(`
    await withInterruption(async (untilInterrupted) => {
      const signal = new Promise((resolve) => process.once("SIGINT", resolve));
      console.log("ready");
      await Promise.all([signal, sleep(50)]);
      await untilInterrupted(async () => console.log("started"));
    }).catch((error) => console.log(error.message));`);
  child.kill("SIGINT");
  expect(await ended).toEqual([0, null]);
  expect(printed()).toBe("ready\nStopped by SIGINT.\n");
});

test("signals that come together do not end the process while it cleans up; a later one does", async () => {
  const { child, ended } = await start(`
    await withInterruption(async (untilInterrupted) => {
      console.log("ready");
      await untilInterrupted(() => sleep(3_600_000)).catch(() => {});
      await sleep(3_600_000);
    });`);
  child.kill("SIGINT");
  await sleep(100);
  child.kill("SIGINT");
  await sleep(5000);
  expect(child.exitCode ?? child.signalCode).toBe(null);
  child.kill("SIGINT");
  expect(await ended).toEqual([null, "SIGINT"]);
});
