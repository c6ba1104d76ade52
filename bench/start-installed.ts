import type { Scratch } from "./measuring/scratch.ts";

type Startable<Started> = { readonly isInstalled: boolean; start(scratch: Scratch): Promise<Started> };

/** Starts the installed servers one after the other. They stop together, also if a later one cannot start. */
export async function startInstalled<Started extends { stop(): Promise<void> }>(
  launchers: readonly Startable<Started>[],
  scratch: Scratch,
): Promise<AsyncDisposable & { readonly started: readonly Started[] }> {
  await using opened = new AsyncDisposableStack();
  const started: Started[] = [];
  for (const { start } of launchers.filter(({ isInstalled }) => isInstalled)) {
    started.push(opened.adopt(await start(scratch), (program) => program.stop()));
  }
  const all = opened.move();
  return { started, [Symbol.asyncDispose]: () => all.disposeAsync() };
}
