import type { OperationParameters, OperationRequestInfo, OperationStages, PreparedOperation } from "./operation.ts";

/** Plans and queries an operation that a protocol runs later. */
export async function prepareOperation(
  stages: OperationStages,
  parameters: OperationParameters,
  requestInfo: OperationRequestInfo,
): Promise<PreparedOperation> {
  const planned = await stages.plan(parameters, requestInfo);
  const bound = await stages.query(planned);
  const { kind, args, checked, memory } = planned;
  return {
    ...args,
    kind,
    documentBytes: checked.bytes,
    run: () => stages.run(planned, bound),
    release: () => memory.release(),
  };
}
