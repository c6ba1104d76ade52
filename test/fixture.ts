import { chmod, mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { aroundAll, beforeAll } from "vitest";

const CLOSERS = [Symbol.asyncDispose, "close", "stop", "drop", "remove", "end", "kill"] as const;

type Closable = { readonly [Name in (typeof CLOSERS)[number]]: Record<Name, () => unknown> }[(typeof CLOSERS)[number]];

/**
 * Opens something before the tests of a file or of a `describe`, and closes it after them. Fixtures are opened in the order in
 * which they are declared and closed in the reverse order after all hooks, also if one of them or a hook fails. The returned object stands for the one
 * that was opened: tests and hooks may read its properties, and the body of a file or a `describe` may not.
 */
export function useFixture<Opened extends Closable>(open: () => Opened | Promise<Opened>): Opened;
export function useFixture<Opened extends object>(
  open: () => Opened | Promise<Opened>,
  close: (opened: Opened) => unknown,
): Opened;
export function useFixture<Opened extends object>(
  open: () => Opened | Promise<Opened>,
  close: (opened: Opened) => unknown = closeByItsMethod,
): Opened {
  let opened: Opened | undefined;
  aroundTests(
    async () => {
      opened = await open();
    },
    async () => {
      await close(opened!);
      // The tests of a file stay in memory as long as the process, which runs many files. Vitest restores spies after this.
      opened = {} as Opened;
    },
  );
  return standInFor(() => {
    if (opened === undefined)
      throw new Error("A fixture is opened before the first test: only tests and later hooks can read it.");
    return opened;
  });
}

/** A folder for the tests of a file or of a `describe`; mode 0o755 where a program of another user reads it. */
export function useFolder(prefix: string, mode = 0o700): string {
  const folder = join(tmpdir(), `${prefix}${crypto.randomUUID().slice(0, 8)}`);
  aroundTests(
    async () => {
      await mkdir(folder, { mode });
      // The umask takes bits from the mode of a new folder.
      await chmod(folder, mode);
    },
    () => rm(folder, { recursive: true, force: true, maxRetries: 50 }),
  );
  return folder;
}

/** Runs `close` after the tests and their hooks, if `open` succeeded. Hooks by `afterAll` would not run after one that fails. */
export function aroundTests(open: () => Promise<void>, close: () => unknown): void {
  let isOpen = false;
  beforeAll(async () => {
    await open();
    isOpen = true;
  });
  aroundAll(async (runTests) => {
    await runTests();
    if (isOpen) await close();
  });
}

async function closeByItsMethod(opened: object): Promise<void> {
  const closer = CLOSERS.find((name) => name in opened);
  await (opened as Record<PropertyKey, () => unknown>)[closer!]!();
}

/** The properties are those of the object that `find` returns at that moment. */
function standInFor<T extends object>(find: () => T): T {
  return new Proxy({} as T, {
    get(_, name) {
      const object = find();
      const value = Reflect.get(object, name, object);
      // Methods of classes use private fields, which a proxy does not have.
      return typeof value === "function" && !Object.hasOwn(object, name) ? value.bind(object) : value;
    },
    set: (_, name, value) => Reflect.set(find(), name, value),
    has: (_, name) => Reflect.has(find(), name),
    deleteProperty: (_, name) => Reflect.deleteProperty(find(), name),
    defineProperty: (_, name, descriptor) =>
      Reflect.defineProperty(find(), name, { ...descriptor, configurable: true }),
    ownKeys: () => Reflect.ownKeys(find()),
    getPrototypeOf: () => Reflect.getPrototypeOf(find()),
    getOwnPropertyDescriptor(_, name) {
      const descriptor = Reflect.getOwnPropertyDescriptor(find(), name);
      return descriptor && { ...descriptor, configurable: true };
    },
  });
}
