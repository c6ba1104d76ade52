import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

export type TestResponse = {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
};

type TestRequest = {
  readonly agent?: Agent | false;
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: string;
};

/** Sends one request, on a connection of its own unless an agent keeps one. */
export async function ask(
  url: string,
  { agent = false, headers = {}, method = "GET" }: TestRequest = {},
): Promise<TestResponse> {
  const sent = request(url, { agent, headers, method }).end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of answer) text += chunk;
  return { status: answer.statusCode!, headers: answer.headers, text };
}

export type Traffic = {
  readonly answered: () => number;
  /** Ends the traffic, and returns the errors until then. */
  end(): Promise<string[]>;
};

/** Clients that each keep a connection and ask again and again, in a hurry or with pauses of so many milliseconds. */
export function openTraffic(url: string, pauses: readonly number[]): Traffic {
  const faults: string[] = [];
  let answered = 0;
  let goesOn = true;
  const clients = pauses.map(async (pause) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (goesOn) {
      try {
        const { status } = await ask(url, { agent });
        if (status === 200) answered++;
        else faults.push(`status ${status}`);
      } catch (error) {
        faults.push(String(error));
      }
      if (pause > 0) await sleep(pause);
    }
    agent.destroy();
  });
  return {
    answered: () => answered,
    async end() {
      goesOn = false;
      await Promise.all(clients);
      return faults;
    },
  };
}
