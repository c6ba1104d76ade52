import { openWire } from "../../postgres-wire.ts";

export type StatementTap = {
  /** The same database, by way of the tap. */
  readonly url: string;
  /** Every statement's text that has passed, once. */
  readonly statements: ReadonlySet<string>;
  stop(): Promise<void>;
};

const [PARSE, QUERY] = [0x50, 0x51];

/** Passes on everything between clients and Postgres, and notes their SQL. */
export async function tapStatements(databaseUrl: string): Promise<StatementTap> {
  const statements = new Set<string>();
  const { url, close } = await openWire(databaseUrl, { listen: () => makeReader((text) => statements.add(text)) });
  return { url, statements, stop: close };
}

/** The first message of a session has no type; each of the others a type and a length, which counts itself. */
function makeReader(note: (text: string) => void): (chunk: Buffer) => void {
  let pending = Buffer.alloc(0);
  let begun = false;
  return (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    for (;;) {
      const typeLength = begun ? 1 : 0;
      if (pending.length < typeLength + 4) return;
      const end = typeLength + pending.readUInt32BE(typeLength);
      if (pending.length < end) return;
      if (begun) noteStatement(pending.subarray(0, end), note);
      begun = true;
      pending = pending.subarray(end);
    }
  };
}

function noteStatement(message: Buffer, note: (text: string) => void): void {
  const content = message.subarray(5);
  if (message[0] === QUERY) note(content.toString("utf8", 0, content.indexOf(0)));
  if (message[0] !== PARSE) return;
  const start = content.indexOf(0) + 1;
  note(content.toString("utf8", start, content.indexOf(0, start)));
}
