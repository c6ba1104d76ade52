import { MISREAD } from "./command.ts";
import { commandLine } from "./command-line.ts";

/** Whether the service is to start: it takes settings, and no words but `--dev`. Anything else is answered here. */
export function takesStartWords(words: readonly string[]): boolean {
  const [word] = words.filter((each) => each !== "--dev");
  if (word === undefined) return true;
  const usage = `${commandLine("start")} takes no words but settings in its environment, such as PORT=8080; ${commandLine("config")} shows all of them.`;
  if (word === "--help" || word === "-h") {
    console.log(usage);
    return false;
  }
  console.error(word.startsWith("-") ? `There is no option ${word}.` : `"${word}" is one word too many.`);
  console.error(`\n${usage}`);
  process.exitCode = MISREAD;
  return false;
}
