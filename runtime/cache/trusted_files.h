// Folders and files that nobody can have written but this user and root, who may do all anyway:
// what becomes code is read from no others. Each is looked at once it is open, so that what is
// looked at is what is read, and no links are followed in the last part of a path.
#pragma once
#include <filesystem>

#include "runtime/cache/open_file.h"
#include "runtime/core/error.h"

namespace cinch::rt {

/// Errors: Io, naming the path and why it is not to be believed ("belongs to user 1000"), or the
/// system's reason, whose number is then the native code.
Result<OpenFile> open_trusted_folder(const std::filesystem::path& path);
/// The folder or file that is called as the last part of `path`, within an open folder.
Result<OpenFile> open_trusted_folder_in(const OpenFile& folder, const std::filesystem::path& path);
Result<OpenFile> open_trusted_file_in(const OpenFile& folder, const std::filesystem::path& path);

/// Is the error that there is nothing at the path?
bool is_missing(const Error& error);

/// Makes the folder and those above it as far as they are not there: for this user alone. Errors:
/// Io.
Status make_private_folders(const std::filesystem::path& path);
/// One that others may look into, as far as they may look into `folder` and the umask lets them.
Status make_folder_in(const OpenFile& folder, const std::filesystem::path& path);

}  // namespace cinch::rt
