import { makeLogger } from "../engine/log.ts";
import type { Departure } from "../rest-gateway/drain.ts";
import { type Service, startService } from "../service.ts";
import { endAfter, fail, LETTING_GO_MS } from "./ending.ts";
import type { Order, Report } from "./orders.ts";
import { keepYoungSpace } from "./young-space.ts";

keepYoungSpace();
let service: Service | null = null;
let drainTimeout = 0;
let isLeaving = false;
let shortage: string | null = null;

process.on("message", (order: Order) => {
  switch (order.kind) {
    case "serve":
      void serve(order);
      break;
    case "shortage":
      shortage = order.fault;
      break;
    case "ask":
      void tell(order);
      break;
    case "leave":
      void leave(order.departure);
  }
});
// Ctrl-C reaches every process of a terminal, and the one that looks after us says what follows from it.
process.on("SIGINT", () => {});
// Meant for that one too; by itself it would end us, and what we are answering.
process.on("SIGUSR2", () => {});
process.on("SIGTERM", () => void leave({ othersStay: true }));

async function serve({ worker, config, postgres, schemaPatienceMs }: Order & { kind: "serve" }): Promise<void> {
  drainTimeout = config.drainTimeout;
  const log = makeLogger(config, { worker });
  try {
    service = await startService(config, {
      log,
      tell: (step) => log.info(step),
      giveUp: fail,
      postgres: { ...postgres, close: async () => {} },
      shortage: () => shortage,
      ...(schemaPatienceMs !== undefined && { schemaPatienceMs }),
    });
    report({ kind: "serving", url: service.url });
  } catch (error) {
    fail(error);
    process.exit();
  }
}

async function tell({ id, what }: Order & { kind: "ask" }): Promise<void> {
  const answer = await service?.operable[what]().catch(() => undefined);
  report({ kind: "told", id, answer });
}

/** Who looks after us may have ended. */
function report(message: Report): void {
  process.send!(message, undefined, undefined, () => {});
}

async function leave(departure: Departure): Promise<void> {
  if (isLeaving) return;
  isLeaving = true;
  if (!service) process.exit();
  endAfter(drainTimeout * 1000 + LETTING_GO_MS);
  await service.stop(departure).catch(fail);
  process.exit();
}
