import { openFileStore } from "#files";
import { commandLine } from "#runtime";
import { findAction, runCommand, UsageError } from "./command/command.ts";
import { withOwner } from "./command/command-context.ts";
import { importFiles } from "./import-files.ts";
import { makeStorageSource } from "./storage-source.ts";

const KEY_VARIABLE = "SOURCE_SERVICE_KEY";

await runCommand({
  usage: `${KEY_VARIABLE}=… ${commandLine("storage", "import --from URL [--bucket ID ...]")}
  Copies buckets and objects of a Supabase project, or of another content service, with the key of its service role.
  What is here already is skipped: after an interruption, run the command again.

Example:
  ${KEY_VARIABLE}=eyJ… ${commandLine("storage", "import --from https://abcdefgh.supabase.co --bucket avatars")}`,
  options: { from: { type: "string" }, bucket: { type: "string", multiple: true } },
  async run(config, [word = "", ...others], { from, bucket = [] }) {
    const action = findAction({ import: importFiles }, "storage", word);
    if (others.length > 0) throw new UsageError(`Unexpected argument "${others[0]}".`);
    const source = makeStorageSource(readAddress(from), readKey());
    await withOwner(config, async (asOwner) => {
      const options = { store: openFileStore(config), asOwner, buckets: bucket as string[], report: console.log };
      const { copied, bytes, skipped, failures } = await action(source, options);
      console.log(`Copied ${copied} objects (${bytes} bytes); ${skipped} were here already.`);
      if (failures.length === 0) return;
      const shown = failures.slice(0, 100).join("\n");
      throw new Error(`${failures.length} objects were not copied:\n${shown}`);
    });
  },
});

function readAddress(from: unknown): string {
  if (typeof from !== "string") throw new UsageError("Specify the address of the source with --from.");
  if (!/^https?:$/.test(URL.parse(from)?.protocol ?? "")) throw new UsageError(`${from} is no HTTP address.`);
  return from;
}

/** Reads the key from the environment, because other users of the machine see the arguments of a command. */
function readKey(): string {
  const key = process.env[KEY_VARIABLE];
  if (!key) throw new UsageError(`Set ${KEY_VARIABLE} to the service role's key of the source.`);
  return key;
}
