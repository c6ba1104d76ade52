import { readFile } from "node:fs/promises";
import { type RecentRequest, type RequestSearch, searchRequests } from "./recent-requests.ts";
import { listLogFiles } from "./request-log.ts";

type FoundInLog = { readonly requests: readonly RecentRequest[]; readonly searched: number };

/** Searches the files of a log, the newest first, until the older ones can have no newer request. */
export async function searchRequestLog(
  folder: string,
  search: RequestSearch,
  signal?: { readonly aborted: boolean },
): Promise<FoundInLog> {
  let requests: readonly RecentRequest[] = [];
  let searched = 0;
  for (const { path, modified } of await listLogFiles(folder)) {
    const oldest = requests.length < search.limit ? 0 : requests.at(-1)!.at;
    if (modified < oldest || signal?.aborted) break;
    // Another process may have deleted the file.
    const text = await readFile(path, "utf8").catch(() => "");
    const lines = text.split("\n");
    // The text after the last line break is still being written.
    lines.pop();
    searched += lines.length;
    const found = mayHaveWords(text, search) ? lines.flatMap(parseLine) : [];
    requests = searchRequests([...requests, ...found], search);
  }
  return { requests, searched };
}

/** Most files lack one of the words, so that their lines need not be parsed. */
function mayHaveWords(text: string, { words }: RequestSearch): boolean {
  const lowered = words.length === 0 ? "" : text.toLowerCase();
  return words.every((word) => lowered.includes(JSON.stringify(word.toLowerCase()).slice(1, -1)));
}

/** A line is broken if the disk was full while it was written. */
function parseLine(line: string): RecentRequest[] {
  try {
    return [JSON.parse(line) as RecentRequest];
  } catch {
    return [];
  }
}
