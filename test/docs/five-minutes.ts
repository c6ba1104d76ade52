const WALK = /^## Five minutes$(.*?)^## /ms;
const BLOCK = /^```(sh|js)\n(.*?)^```$/gms;

/** The address of the service in the README. */
export const ADDRESS = "http://127.0.0.1:3000";

export type FiveMinutes = Readonly<Record<"signIn" | "write" | "read" | "addTable" | "watcher", string>>;

/** The commands of the README's section "Five minutes". */
export function readFiveMinutes(readme: string): FiveMinutes {
  const blocks = [...WALK.exec(readme)![1]!.matchAll(BLOCK)];
  const texts = (language: string) => blocks.filter((block) => block[1] === language).map((block) => block[2]!);
  const [signIn, write, read, addTable, ...others] = texts("sh");
  const [watcher] = texts("js");
  if (!addTable || !watcher || others.length > 0)
    throw new Error("The steps of the README's five minutes have changed.");
  return { signIn: signIn!, write: write!, read: read!, addTable, watcher };
}
