// `compared-side.ts` starts it: it opens services of the commit in the folder that the command line names, all in this process, since to load
// the service takes longer than to start it.
import { join } from "node:path";
import type * as Serve from "../serve.ts";
import type { OpenedMessage, OpenMessage } from "./compared-side.ts";

const { serve }: typeof Serve = await import(join(process.argv[2]!, "test/serve.ts"));
const stops = new Map<number, () => Promise<void>>();
const answer = (message: OpenedMessage) => process.send!(message);

process.on("message", async ({ id, urls, settings }: OpenMessage) => {
  try {
    if (urls === null) {
      await stops.get(id)!();
      return answer({ id, url: "", error: null });
    }
    const service = await serve(urls, settings);
    stops.set(id, () => service.stop());
    answer({ id, url: service.url, error: null });
  } catch (error) {
    answer({ id, url: "", error: String((error as Error).stack) });
  }
});
process.on("disconnect", () => process.exit());
