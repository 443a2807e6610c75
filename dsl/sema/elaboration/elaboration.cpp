// Elaborates one compressor, and gives its parts their view of the whole.
#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

Part::Part(Elaboration& all)
    : all_(all),
      module_(all.module),
      reporter_(all.reporter),
      out_(all.out),
      mode_(all.mode),
      env_(all.env),
      sizes_(all.sizes),
      prover_(all.sizes.prover()),
      types_(all.types),
      build_(all.build),
      text_(all.text),
      conversions_(all.conversions) {}

bool Elaboration::run(Spec& spec, const ast::Name& name, const std::vector<Binding>& bindings,
                      bool is_check) {
  const std::size_t errors = reporter.num_errors();
  const GrowthLimits::Use use(growth, spec.node->name.span);
  mode.is_check = is_check;
  out.info.name = name.text;
  out.info.source = spec.decl.unit->source->name();
  out.name_span = spec.node->name.span;
  params.open(spec, spec.is_carrier);
  params.check_bindings(bindings, name.span);
  Instance* root = items.add_root(spec);
  items.elaborate_items(*root);
  out.claims = root->claims;
  if (reporter.num_errors() == errors && !spec.is_carrier) items.check(*root, name.span);
  if (reporter.num_errors() == errors) bodies.elaborate_bodies(*root);
  return reporter.num_errors() == errors;
}

}  // namespace cinch::sema
