/** The help names replacements for the models of Supabase's runtime. */
export const MODELS_HELP =
  "its sessions throw when they run: use npm:openai with the address of a server of models (OpenAI, Ollama, llama.cpp), or npm:@huggingface/transformers";

/** Makes `Supabase.ai`. Sessions can be made, since functions make them when they are loaded, but have no model. */
export function makeSupabaseNamespace(): Readonly<Record<string, unknown>> {
  class Session {
    readonly #model: string;

    constructor(model: string) {
      this.#model = model;
    }

    async run(): Promise<never> {
      throw new Error(`The model ${this.#model} of Supabase.ai is not available here, and ${MODELS_HELP}`);
    }
  }
  return Object.freeze({ ai: Object.freeze({ Session }) });
}
